"""The driver's side of `workers`: what the ranks have measured, asked for between two steps."""

from __future__ import annotations

import json
import math
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from rlvitals.guard import Guard
from rlvitals.integrations.loop.vitals import Vitals
from rlvitals.integrations.verl.places import hooks
from rlvitals.integrations.verl.workers import COLUMN, count_poisoned, take

TRIES = 3
"""Workers that have answered with an error so often in a row are not asked again."""


class Workers:
    """A trainer's actors. Asking blocks until all ranks have answered: they are idle between two steps."""

    def __init__(self, trainer: Any) -> None:
        self._trainer: Any = weakref.proxy(trainer)
        self._failed = 0

    @property
    def group(self) -> Any:
        """None where they carry out no function, or cannot be asked any more."""
        found = getattr(self._trainer, "actor_rollout_wg", None)
        able = hasattr(found, "execute_with_func_generator") and self._failed < TRIES
        return found if able else None

    def tell(self, vitals: Vitals) -> None:
        """Adds what the workers have measured of this step to what is reported."""
        group = self.group
        if group is None:
            return
        began = time.perf_counter()
        self._failed += 1
        answers = _asked(group)
        self._failed = 0
        vitals.reporter.spent(time.perf_counter() - began)
        self._sum_up(vitals, answers)

    def _sum_up(self, vitals: Vitals, answers: Sequence[Mapping[str, Any]]) -> None:
        from rlvitals.probes.tally import Tally

        seconds = 0.0
        for answer in answers:
            with Guard("reading what a worker measured"):
                vitals.add(Tally.from_dict(answer["tally"]))
            seconds = max(seconds, float(answer["seconds"]))
            _enter(answer["hooks"])
        vitals.reporter.spent(seconds)

    def poisoned(self) -> int:
        """Parameters (of shards, on all ranks) that hold a NaN or an infinity; 0 where that cannot be known."""
        from rlvitals.integrations.verl.ranks_of_workers import on_each_rank

        if self.group is None:
            return 0
        return int(sum(n for n in on_each_rank(self.group, count_poisoned) if not math.isnan(n)))


def _asked(group: Any) -> list[Mapping[str, Any]]:
    """Each rank's answer. Raises what verl raises."""
    import numpy as np
    from verl import DataProto

    rows = np.array([""] * int(group.world_size), dtype=object)
    answers = group.execute_with_func_generator(take, DataProto.from_dict(tensors={}, non_tensors={COLUMN: rows}))
    return [json.loads(told) for told in answers.non_tensor_batch[COLUMN].tolist() if told]


def _enter(told: Mapping[str, Mapping[str, Any]]) -> None:
    """A worker's own hooks in the driver's table, which is the one that people see."""
    table = hooks()
    known = {hook.name: hook for hook in table}
    for name, row in told.items():
        hook = known.get(name)
        if hook is None:
            target, gives = str(row["target"]), str(row["gives"])
            hook = table.add(
                name,
                target,
                gives,
                patched=bool(row["patched"]),
                why=str(row["why"]),
                optional=bool(row["optional"]),
            )
        hook.patched, hook.why = bool(row["patched"]), str(row["why"])
        hook.seen += int(row["seen"])
        if row["failures"]:
            hook.failures, hook.error = int(row["failures"]), str(row["error"])
