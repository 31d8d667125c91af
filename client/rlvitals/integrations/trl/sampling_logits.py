"""The logits from which completions are sampled, at a few of the tokens; the loss itself never forms any."""

from __future__ import annotations

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
ROWS = 8
ENGINE = "not measured: another engine samples, and the loss never forms logits"
COMPILED = "not measured: the model is compiled"
UNSEEN = "not measured: no logits were formed while completions were sampled"


class SamplingLogits:
    """A hook on the output embedding that looks at the 1st, 2nd, 4th, 8th … token of the completions.

    It acts between `begin` and `end` only, where one position at a time is formed, reads at most ``ROWS``
    completions, and never changes what the module returns.
    """

    def __init__(self, trainer: Any, found: Callable[[Reduction], None]) -> None:
        self._found, self._tokens, self._open = found, 0, False
        self._rank = int(trainer.accelerator.process_index)
        self.refused = _refusal(trainer)
        self._handle: Any = None

    def install(self, model: Any) -> None:
        head = model.get_output_embeddings() if not self.refused else None
        if head is not None:
            self._handle = head.register_forward_hook(self._formed)

    def remove(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def begin(self) -> None:
        self._tokens, self._open = 0, True

    def end(self) -> None:
        self._open = False

    def absent(self) -> Tally:
        return Tally.absent(METRICS, self.refused or UNSEEN)

    def _formed(self, module: Any, given: Any, logits: Any) -> None:
        if not self._open or not isinstance(logits, Tensor) or logits.dim() != 3 or logits.shape[1] != 1:
            return
        self._tokens += 1
        if self._tokens & (self._tokens - 1):
            return
        with Guard("looking at logits"):
            first = self._rank * logits.shape[0]
            looked = measure_logits(logits.detach()[:ROWS], positions=ROWS, sample_offset=first)
            self._found(replace(looked, build=partial(_at, self._tokens - 1, looked.build)))


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
