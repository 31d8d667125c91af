"""Peak extra memory of the policy probes on 512 x 4,096 tokens, against the tensors that they are given."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rlvitals.probes.advantages import measure_advantages
from rlvitals.probes.entropy import measure_entropy
from rlvitals.probes.forced import measure_forced
from rlvitals.probes.gradients import measure_loss_tokens, measure_policy_pull, weights_for
from rlvitals.probes.kl import measure_kl
from rlvitals.probes.nonfinite import measure_nonfinite, measure_nonfinite_ratios
from rlvitals.probes.ratios import measure_ratios, measure_reference, measure_rollout

SHAPE = (512, 4096)
ROWS = 151_936
BUDGET = 0.10

Batch = Mapping[str, Tensor]
Probe = Callable[[Batch], object]

PROBES: dict[str, tuple[tuple[str, ...], Probe]] = {
    "kl": (
        ("logp", "ref", "mask", "ids", "weight"),
        lambda b: measure_kl(
            b["logp"], b["ref"], b["mask"], b["weight"], coef=0.04, ids=b["ids"], vocabulary=ROWS
        ),
    ),
    "ratios": (
        ("logp", "old", "mask", "ids", "advantages"),
        lambda b: measure_ratios(
            b["logp"], b["old"], b["mask"], b["advantages"], b["ids"], eps_low=0.2, eps_high=0.2
        ),
    ),
    "rollout": (
        ("logp", "old", "mask", "ids"),
        lambda b: measure_rollout(b["logp"], b["old"], b["mask"], b["ids"]),
    ),
    "reference": (
        ("logp", "ref", "mask", "ids"),
        lambda b: measure_reference(b["logp"], b["ref"], b["mask"], b["ids"]),
    ),
    "entropy": (("entropy", "mask"), lambda b: measure_entropy(b["entropy"], b["mask"])),
    "forced tokens": (
        ("chosen", "mask", "ids"),
        lambda b: measure_forced(b["chosen"], b["mask"], b["ids"], vocabulary=ROWS),
    ),
    "advantages by token": (("old", "mask"), lambda b: measure_advantages(b["old"], mask=b["mask"])),
    "policy pull": (
        ("logp", "old", "mask", "advantages", "weight"),
        lambda b: measure_policy_pull(
            b["logp"], b["old"], b["advantages"], b["mask"], b["weight"], clip=(0.2, 0.2)
        ),
    ),
    "weights": (("mask",), lambda b: weights_for("grpo", b["mask"])),
    "loss tokens": (("mask",), lambda b: measure_loss_tokens(b["mask"])),
    "non-finite census": (
        ("logp", "ref", "old", "mask", "ids"),
        lambda b: measure_nonfinite({n: b[n] for n in ("logp", "ref", "old")}, b["mask"], ids=b["ids"]),
    ),
    "non-finite ratios": (
        ("logp", "old", "mask", "ids"),
        lambda b: measure_nonfinite_ratios(b["logp"], b["old"], b["mask"], ids=b["ids"]),
    ),
}
"""Which of a batch's tensors a probe reads, and how it is called; without waiting for the sums."""


def main() -> None:
    batches = {
        "CPU": batch(SHAPE),
        "CPU, a NaN": batch(SHAPE, torch.nan),
        "device": on_device(batch(SHAPE)),
        "device, bf16": on_device(batch(SHAPE, precision=torch.bfloat16)),
        "and a bool mask": on_device(batch(SHAPE, precision=torch.bfloat16, masks=torch.bool)),
    }
    print(f"peak extra bytes / bytes of the inputs, budget {BUDGET:.0%}; 'device' is a dry run of its operations")
    print(f"  {'':20}{''.join(f'{name:>16}' for name in batches)}")
    for name, (needs, probe) in PROBES.items():
        shares = [share(probe, needs, tensors) for tensors in batches.values()]
        over = "   over" if max(shares) > BUDGET else ""
        print(f"  {name:20}{''.join(f'{value:16.2%}' for value in shares)}{over}")


def batch(
    shape: tuple[int, int],
    odd: float = -1.0,
    precision: torch.dtype = torch.float32,
    masks: torch.dtype = torch.int64,
) -> dict[str, Tensor]:
    """Single precision and 64-bit masks, as a trainer holds them; one log-prob in the middle is ``odd``."""
    draw = torch.Generator().manual_seed(0)
    logp = -3 * torch.rand(shape, generator=draw)
    ref, old = (logp + scale * torch.randn(shape, generator=draw) for scale in (0.1, 0.02))
    logp[shape[0] // 2, shape[1] // 2] = odd
    lengths = torch.randint(shape[1] // 4, shape[1] + 1, (shape[0],), generator=draw)
    mask = torch.arange(shape[1]) < lengths.unsqueeze(1)
    return {
        "logp": logp.to(precision),
        "ref": ref.to(precision),
        "old": old.to(precision),
        "entropy": -logp.to(precision),
        "chosen": mask.to(masks),
        "mask": mask.to(masks),
        "ids": torch.randint(0, ROWS, shape, generator=draw),
        "advantages": torch.randn(shape[0], generator=draw),
        "weight": torch.full((shape[0], 1), 1e-3, dtype=torch.float64),
    }


def on_device(tensors: Batch) -> dict[str, Tensor]:
    """The same without numbers: what runs on them is launched as on a GPU, and cannot look at any value."""
    return {name: tensor.to("meta") for name, tensor in tensors.items()}


def share(probe: Probe, needs: tuple[str, ...], tensors: Batch) -> float:
    given = {name: tensors[name] for name in needs}
    with LiveBytes(given.values()) as live:
        probe(given)
    return live.peak / sum(tensor.nbytes for tensor in given.values())


class LiveBytes(TorchDispatchMode):
    """The most bytes that were held at once by tensors made inside, by their storages."""

    def __init__(self, inputs: Any) -> None:
        super().__init__()
        self.peak = 0
        self._known = {tensor.untyped_storage()._cdata for tensor in inputs}
        self._live: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in _tensors(result):
            storage = tensor.untyped_storage()
            if storage._cdata not in self._known:
                self._live[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self._live = {key: held for key, held in self._live.items() if not held[0].expired()}
        self.peak = max(self.peak, sum(size for _, size in self._live.values()))
        return result


def _tensors(result: Any) -> Iterator[Tensor]:
    return (leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor))


def traced(call: Callable[[], object]) -> int:
    """Peak bytes that NumPy and Python allocated in a call."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


if __name__ == "__main__":
    main()
