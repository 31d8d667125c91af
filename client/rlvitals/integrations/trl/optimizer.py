"""Around the optimizer's step: gradients by parameter, what the step did to the weights, the loss scale.

Nothing here talks to other ranks. Where they hold the same gradients and weights one of them looks; shards are
looked at by each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor

from rlvitals.probes import updates
from rlvitals.probes.arrays import Floats
from rlvitals.probes.memory import tally_memory
from rlvitals.probes.parameters import measure_parameter_gradients
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.tally import Tally

BY_PARAMETER = ("gradient.nonfinite_parameters", "gradient.top_parameter_share")
OF_WEIGHTS = (
    "gradient.update_ratio",
    "gradient.unchanged_share",
    "gradient.skipped_steps",
    "numerics.nonfinite_weights",
)
PARAMETERS = 6
SCALE = ("gradient.loss_scale",)
DEEPSPEED = "not measured: DeepSpeed's engine keeps gradients, weights and loss scale to itself"


class OptimizerWatch:
    """One trainer's. ``first`` says whether this rank speaks for what all ranks hold alike."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self._before: updates.Sample | None = None
        self.first = True

    @property
    def refused(self) -> str:
        """Why gradients and weights cannot be looked at; "" where they can."""
        return DEEPSPEED if getattr(self._trainer, "is_deepspeed_enabled", False) else ""

    def absent(self) -> Tally:
        """What this trainer cannot give, with the reasons."""
        if self.refused:
            return Tally.absent((*BY_PARAMETER, *OF_WEIGHTS, *SCALE), self.refused)
        return Tally.absent(SCALE, updates.NO_SCALER) if self._scale() is None else Tally.zero()

    def gradients(self) -> Iterator[Reduction]:
        """Before clipping, which would leave nothing finite beside a NaN."""
        if self._looks():
            yield measure_parameter_gradients(self._parameters())

    def step_begins(self, step: int) -> None:
        """Keeps copies of a few weights, ours alone, until `step_done`."""
        if self._looks():
            self._before = updates.sample_weights(self._parameters(), seed=step, parameters=PARAMETERS)

    def step_done(self) -> Iterator[Reduction]:
        before, self._before = self._before, None
        if before is None:
            return
        found = updates.measure_update(before, self._parameters())
        yield found if self.first else replace(found, build=partial(_of_shard, found.build))
        scale = self._scale()
        if scale is not None and self.first:
            skipped = float(bool(self._trainer.accelerator.optimizer_step_was_skipped))
            yield updates.measure_scaler(scale, found_inf=skipped)

    def memory(self) -> Tally:
        """Of this rank's device, by its allocator's books."""
        return tally_memory(self._trainer.accelerator.device)

    def _looks(self) -> bool:
        return not self.refused and (self.first or bool(getattr(self._trainer, "is_fsdp_enabled", False)))

    def _parameters(self) -> Iterator[tuple[str, Tensor]]:
        named: Iterator[tuple[str, Tensor]] = self._trainer.model.named_parameters()
        return named

    def _scale(self) -> Tensor | None:
        # the tensor itself: asking the scaler for the number would wait for the device
        scale: Tensor | None = getattr(getattr(self._trainer.accelerator, "scaler", None), "_scale", None)
        return scale


def _of_shard(build: Callable[[Sequence[Floats]], Tally], parts: Sequence[Floats]) -> Tally:
    """The step itself is counted once, by the first rank."""
    tally = build(parts)
    counts = {name: count for name, count in tally.counts.items() if name not in ("update.steps", "update.still")}
    return replace(tally, counts=counts)
