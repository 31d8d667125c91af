"""What a probe needs beside its inputs is a tenth of them at most, on 512 x 4,096 tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks import memory
from benchmarks.memory import BUDGET, PROBES, SHAPE
from rlvitals.probes.entropy import tally_entropy
from rlvitals.probes.forced import tally_forced
from rlvitals.probes.gradients import tally_policy_pull
from rlvitals.probes.kl import tally_kl
from rlvitals.probes.nonfinite import tally_nonfinite
from rlvitals.probes.ratios import tally_ratios, tally_rollout

Batch = dict[str, Tensor]


@pytest.fixture(scope="module")
def tensors() -> Iterator[Batch]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield memory.batch(SHAPE)
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", PROBES)
def test_on_a_cpu(name: str, tensors: Batch) -> None:
    reads, probe = PROBES[name]
    assert memory.share(probe, reads, tensors) <= BUDGET


@pytest.mark.parametrize("name", PROBES)
def test_on_a_device(name: str, tensors: Batch) -> None:
    reads, probe = PROBES[name]
    assert memory.share(probe, reads, memory.on_device(tensors)) <= BUDGET


# those that need the most: a dry run is slow, for each operation is told its shapes by Python
@pytest.mark.parametrize("name", ["kl", "rollout", "entropy"])
def test_in_half_precision(name: str, tensors: Batch) -> None:
    reads, probe = PROBES[name]
    half = {
        key: value.bfloat16() if value.dtype == torch.float32 else value
        for key, value in memory.on_device(tensors).items()
    }
    assert memory.share(probe, reads, half) <= BUDGET


def test_the_measure_sees_what_is_made_and_let_go() -> None:
    given = {"logp": torch.zeros(8, 1024)}
    assert memory.share(lambda b: b["logp"] + 1, ("logp",), given) == 1
    assert memory.share(lambda b: ((b["logp"] + 1).exp() * 2).sum(), ("logp",), given) >= 2
    assert memory.share(lambda b: [b["logp"][:1] + 1 for _ in range(8)], ("logp",), given) == 1
    assert memory.share(lambda b: b["logp"].view(-1)[:7], ("logp",), given) == 0


ARRAYS: dict[str, tuple[tuple[str, ...], Callable[[Any], object]]] = {
    "kl": (
        ("logp", "ref", "mask", "weight", "ids"),
        lambda b: tally_kl(b["logp"], b["ref"], b["mask"], b["weight"], coef=0.04, ids=b["ids"]),
    ),
    "ratios": (
        ("logp", "old", "mask", "advantages", "ids"),
        lambda b: tally_ratios(
            b["logp"], b["old"], b["mask"], b["advantages"], b["ids"], eps_low=0.2, eps_high=0.2
        ),
    ),
    "rollout": (("logp", "old", "mask"), lambda b: tally_rollout(b["logp"], b["old"], b["mask"])),
    "policy pull": (
        ("logp", "old", "advantages", "mask", "weight"),
        lambda b: tally_policy_pull(b["logp"], b["old"], b["advantages"], b["mask"], b["weight"], clip=(0.2, 0.2)),
    ),
    "entropy": (("entropy", "mask"), lambda b: tally_entropy(b["entropy"], b["mask"])),
    "forced": (("chosen", "mask", "ids"), lambda b: tally_forced(b["chosen"], b["mask"], b["ids"])),
    "non-finite census": (
        ("logp", "ref", "old", "mask", "ids"),
        lambda b: tally_nonfinite(logp=b["logp"], ref=b["ref"], old=b["old"], mask=b["mask"], ids=b["ids"]),
    ),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_of_arrays(name: str, tensors: Batch) -> None:
    reads, probe = ARRAYS[name]
    given: dict[str, np.ndarray[Any, Any]] = {key: tensors[key].numpy() for key in reads}
    probe(given)  # what is imported at the first call
    extra = memory.traced(lambda: probe(given))
    assert extra <= BUDGET * sum(array.nbytes for array in given.values())
