"""Arrays give what tensors give, and need no torch."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.probes import differences_numpy
from rlvitals.probes.arguments import ProbeArgumentError
from rlvitals.probes.entropy import tally_entropy
from rlvitals.probes.forced import tally_forced
from rlvitals.probes.gradients import LOSS_TYPES, tally_loss_tokens, tally_policy_pull, weights_for
from rlvitals.probes.kl import tally_kl
from rlvitals.probes.kl_form import CLAMPS, ESTIMATORS
from rlvitals.probes.ratios import tally_ratios, tally_reference, tally_rollout
from rlvitals.probes.tally import Tally
from tests.client.probes.catalogue import assert_same

Batch = dict[str, Any]
EPS = {"eps_low": 0.1, "eps_high": 0.1}


def batch(seed: int, rows: int = 6, width: int = 9, spread: float = 0.8) -> Batch:
    """NaN and infinities under the mask and outside it, a row without tokens, one token far off."""
    draw = np.random.default_rng(seed)
    shape = rows, width
    logp = -3 * draw.random(shape)
    numbers: Batch = {"logp": logp} | {
        name: logp + scale * draw.standard_normal(shape)
        for name, scale in (("ref", spread), ("old", 0.1), ("rollout", 0.05))
    }
    mask = draw.random(shape) < 0.7
    if rows > 5 and width > 4:
        mask[0] = False
        for name, row, column, bad in (
            ("logp", 1, 1, np.nan),
            ("logp", 1, 2, -np.inf),
            ("ref", 2, 3, np.inf),
            ("old", 3, 4, np.nan),
            ("rollout", 4, 4, -np.inf),
            ("logp", 5, 0, -60.0),
        ):
            numbers[name][row, column] = bad
            mask[row, column] = column != 2
    numbers = {name: value.astype(np.float32) for name, value in numbers.items()}
    return numbers | {
        "mask": mask.astype(np.int64),
        "chosen": (draw.random(shape) < 0.9).astype(np.int64),
        "entropy": np.exp(-8 + 9 * draw.random(shape)).astype(np.float32),
        "ids": draw.integers(0, 50, shape),
        "advantages": draw.standard_normal(rows).astype(np.float32),
        "row_weight": draw.random((rows, 1)),
        "token_weight": draw.random(shape) * (draw.random(shape) < 0.8),
    }


def tensors(given: Batch) -> Batch:
    return {name: torch.from_numpy(value) for name, value in given.items()}


def _kl(weight: str, **options: Any) -> Callable[[Batch], Tally]:
    return lambda b: tally_kl(
        b["logp"], b["ref"], b["mask"], b[weight], coef=0.04, ids=b["ids"], sample_offset=7, **options
    )


PROBES: dict[str, Callable[[Batch], Tally]] = {
    **{
        f"kl {estimator} {clamp} {weight}": _kl(weight, estimator=estimator, clamp=clamp)
        for estimator in ESTIMATORS
        for clamp in CLAMPS
        for weight in ("row_weight", "token_weight")
    },
    "ratios": lambda b: tally_ratios(b["logp"], b["old"], b["mask"], b["advantages"], b["ids"], **EPS),
    "rollout": lambda b: tally_rollout(b["logp"], b["rollout"], b["mask"], b["ids"], sample_offset=2),
    "reference": lambda b: tally_reference(b["logp"], b["ref"], b["mask"], b["ids"]),
    "reference without ids": lambda b: tally_reference(b["logp"], b["ref"], b["mask"]),
    "pull": lambda b: tally_policy_pull(b["logp"], b["old"], b["advantages"], b["mask"], b["row_weight"]),
    "pull with a clip": lambda b: tally_policy_pull(
        b["logp"], b["old"], b["advantages"], b["mask"], b["row_weight"], clip=(0.1, 0.2)
    ),
    "pull with a cap": lambda b: tally_policy_pull(
        b["logp"], b["old"], b["advantages"], b["mask"], b["row_weight"], cap=1.1
    ),
    "pull without old": lambda b: tally_policy_pull(
        b["logp"], None, b["advantages"], b["mask"], b["token_weight"]
    ),
    "loss tokens": lambda b: tally_loss_tokens(b["mask"]),
    "forced": lambda b: tally_forced(b["chosen"], b["mask"], b["ids"], sample_offset=1),
    "entropy": lambda b: tally_entropy(b["entropy"], b["mask"]),
}


@pytest.mark.parametrize("name", PROBES)
def test_arrays_give_the_same_tally_as_tensors(name: str) -> None:
    for seed in range(3):
        given = batch(seed)
        assert_same(PROBES[name](given), PROBES[name](tensors(given)), rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 5), st.integers(0, 6), st.sampled_from(list(PROBES)))
def test_so_they_do_on_any_shape(seed: int, rows: int, width: int, name: str) -> None:
    given = batch(seed, rows, width, spread=4.0)
    assert_same(PROBES[name](given), PROBES[name](tensors(given)), rel=1e-9)


@pytest.mark.parametrize("name", ["kl k3 after token_weight", "ratios", "pull", "entropy", "rollout"])
def test_the_size_of_the_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    given = batch(0)
    whole = PROBES[name](given)
    monkeypatch.setattr(differences_numpy, "CHUNK", 1)
    assert_same(PROBES[name](given), whole, rel=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 6), st.sampled_from(["kl k3 none row_weight", "ratios", "rollout"]))
def test_micro_batches_of_arrays_add_up_to_the_batch(seed: int, cut: int, name: str) -> None:
    given = batch(seed)
    whole = PROBES[name](given).measured()
    parts = [PROBES[name]({k: v[piece] for k, v in given.items()}) for piece in (slice(cut, 6), slice(0, cut))]
    split = sum(parts, Tally.zero()).measured()
    assert split.values == pytest.approx(whole.values, rel=1e-9, nan_ok=True)
    assert split.missing == whole.missing


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_arrays_have_the_same_weights(loss_type: str) -> None:
    options: Batch = {"accumulation": 2, "max_completion_length": 9, "num_items_in_batch": 40, "num_processes": 2}
    for mask in (batch(0)["mask"], batch(0)["mask"] * 0):
        found = weights_for(loss_type, mask, **options)
        assert isinstance(found, np.ndarray)
        assert found == pytest.approx(weights_for(loss_type, torch.from_numpy(mask), **options).numpy(), rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_tensors_are_cast_up_to_what_arrays_of_the_same_numbers_give(dtype: torch.dtype) -> None:
    given = tensors(batch(0))
    narrow = {n: v.to(dtype) if v.is_floating_point() and v.dim() == 2 else v for n, v in given.items()}
    wide = {n: v.double().numpy() if v.is_floating_point() else v.numpy() for n, v in narrow.items()}
    for name in ("kl k2 none row_weight", "ratios", "rollout", "reference", "pull", "entropy"):
        found, expected = PROBES[name](narrow).measured().values, PROBES[name](wide).measured().values
        # the distance to an overflow is the type's own
        for metric in expected.keys() - {"kl.overflow_margin"}:
            assert math.isclose(found[metric], expected[metric], rel_tol=1e-9, abs_tol=1e-12), metric


def test_without_a_token_under_the_mask_all_is_missing() -> None:
    given = batch(0)
    given["mask"] = given["mask"] * 0
    for name in ("kl k3 none row_weight", "ratios", "rollout", "entropy"):
        measured = PROBES[name](given).measured()
        assert not measured.values
        assert measured.missing


def test_wrong_arrays_are_told_by_name() -> None:
    given = batch(0)
    with pytest.raises(ProbeArgumentError, match="ref: expected"):
        tally_kl(given["logp"], given["ref"][:2], given["mask"], given["row_weight"], coef=1.0)
    with pytest.raises(ProbeArgumentError, match="ids: expected integers"):
        tally_rollout(given["logp"], given["rollout"], given["mask"], given["ids"].astype(float))
    with pytest.raises(ProbeArgumentError, match="advantages: expected"):
        tally_ratios(given["logp"], given["old"], given["mask"], given["advantages"][:2], **EPS)


def test_a_process_without_torch_can_use_them() -> None:
    code = """
import sys
sys.modules["torch"] = None
import numpy as np
from rlvitals.probes import entropy, forced, gradients, kl, ratios
logp, ids, mask = np.array([[-1.0, -9.0]]), np.array([[3, 4]]), np.ones((1, 2), int)
weight, advantages = gradients.weights_for("grpo", mask), np.ones(1)
tally = kl.tally_kl(logp, logp * 0 - 1, mask, weight, coef=0.1, ids=ids)
tally += gradients.tally_policy_pull(logp, logp, advantages, mask, weight) + gradients.tally_loss_tokens(mask)
tally += ratios.tally_ratios(logp, logp, mask, advantages, ids, eps_low=0.2, eps_high=0.2)
tally += ratios.tally_rollout(logp, logp, mask, ids) + ratios.tally_reference(logp, logp, mask, ids)
tally += forced.tally_forced(mask * 0, mask, ids) + entropy.tally_entropy(-logp, mask)
measured = tally.measured()
assert measured.extremes["kl.grad_max"].token_id == 4
assert measured.values["policy.forced_loss_tokens"] == 2
assert set(measured.missing) == {"kl.parameter_grad_norm"}, measured.missing
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(list(PROBES)))
def test_their_tallies_keep_the_laws_and_survive_the_wire(seed: int, name: str) -> None:
    first, second, third = (PROBES[name](batch(seed + n)) for n in range(3))
    assert first + Tally.zero() == first == Tally.zero() + first
    assert first + second == second + first
    assert_same((first + second) + third, first + (second + third))
    assert Tally.from_dict(json.loads(json.dumps(first.to_dict()))) == first
