"""The logits from which completions are sampled, at a few of the tokens; the loss itself never forms any."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor

from rlvitals.guard import Guard
from rlvitals.probes.arrays import Floats
from rlvitals.probes.logits import measure_logits
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.tally import Tally

METRICS = ("numerics.logit_std", "numerics.logit_min", "numerics.logit_max", "numerics.nonfinite_logits")
ENGINE = "not measured: another engine samples, and the loss never forms logits"
COMPILED = "not measured: the model is compiled"
EVERY = 4
UNSEEN = f"not measured: logits are looked at while completions are sampled, in each {EVERY}th generation"


class SamplingLogits:
    """A hook on the output embedding that looks at the 1st, 16th, 256th … token, of one completion each time.

    It does so in each ``EVERY``-th generation, since a row of logits is as long as the vocabulary. It acts between
    `begin` and `end` only, where one position at a time is formed, and never changes what the module returns.
    ``found`` takes what was launched and the seconds that it took.
    """

    def __init__(self, trainer: Any, found: Callable[[Reduction, float], None]) -> None:
        self._found, self._tokens, self._looks, self._open = found, 0, 0, False
        self._generations = 0
        self._rank = int(trainer.accelerator.process_index)
        self.refused = _refusal(trainer)
        self._handle: Any = None

    def install(self, model: Any) -> None:
        self.remove()  # a training that broke off has not
        head = model.get_output_embeddings() if not self.refused else None
        if head is not None:
            self._handle = head.register_forward_hook(self._formed)

    def remove(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def begin(self) -> None:
        self._tokens, self._open = 0, self._generations % EVERY == 0
        self._generations += 1

    def end(self) -> None:
        self._open = False

    def absent(self) -> Tally:
        return Tally.absent(METRICS, self.refused or UNSEEN)

    def _formed(self, module: Any, given: Any, logits: Any) -> None:
        if not self._open or not isinstance(logits, Tensor) or logits.dim() != 3 or logits.shape[1] != 1:
            return
        self._tokens += 1
        if not _is_power_of_16(self._tokens):
            return
        began = time.perf_counter()
        with Guard("looking at logits"):
            row = self._looks % logits.shape[0]
            looked = measure_logits(
                logits.detach()[row : row + 1], positions=1, sample_offset=self._rank * logits.shape[0] + row
            )
            self._looks += 1
            placed = replace(looked, build=partial(_at, self._tokens - 1, looked.build))
            self._found(placed, time.perf_counter() - began)


def _is_power_of_16(number: int) -> bool:
    return number & (number - 1) == 0 and number.bit_length() % 4 == 1


def _at(position: int, build: Callable[[Sequence[Floats]], Tally], parts: Sequence[Floats]) -> Tally:
    tally = build(parts)
    moved = {
        kind: {name: replace(extreme, position=position) for name, extreme in getattr(tally, kind).items()}
        for kind in ("minima", "maxima", "firsts")
    }
    return replace(tally, **moved)


def _refusal(trainer: Any) -> str:
    args = trainer.args
    if getattr(args, "use_vllm", False) or getattr(trainer, "rollout_func", None) is not None:
        return ENGINE
    return COMPILED if getattr(args, "torch_compile", False) else ""
