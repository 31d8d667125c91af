"""Several ranks, one voice: tallies come together on rank 0, its decisions reach all ranks at the same step.

A gloo group of our own carries CPU tensors only, so nothing of ours can interleave with the training's collectives
or spin on a GPU. If the ranks lose each other here, each goes on alone: training is never held up twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from rlvitals.guard import Guard
from rlvitals.integrations.steering import Action
from rlvitals.probes.tally import Tally

ACTIONS_MAX = 64


class Ranks:
    """``rank`` 0 of 1 without torch.distributed. Every method must be called on all ranks, in the same order.

    ``first`` is the training's rank that counts as 0 here and speaks for all.
    """

    def __init__(self, group: Any = None, first: int = 0) -> None:
        self._group, self._first = group, first
        self.size = dist.get_world_size() if group is not None else 1
        self.rank = (dist.get_rank() - first) % self.size if group is not None else 0

    @classmethod
    def meet(cls, timeout_s: float) -> Ranks:
        """Collective: makes the group. Alone where torch.distributed is not in use."""
        if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
            return cls()
        return cls(dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout_s)))

    @property
    def alone(self) -> bool:
        return self.size == 1

    def gather(self, tally: Tally) -> Tally:
        """On rank 0 the sum over all ranks, elsewhere the own tally."""
        if self.alone:
            return tally
        gathered: list[str] | None = [""] * self.size if self.rank == 0 else None
        own = _written(tally)
        with Guard("gathering the ranks' tallies") as watch:
            dist.gather_object(own, gathered, dst=self._first, group=self._group)
        if watch.failed:
            self._part()
            return tally
        return sum((_read(text) for text in gathered), Tally.zero()) if gathered else tally

    def agree(self, actions: Sequence[Action]) -> list[Action]:
        """Rank 0's actions, on every rank; what the others pass is ignored."""
        if self.alone:
            return list(actions)
        sheet = torch.full((1 + 2 * ACTIONS_MAX,), torch.nan, dtype=torch.float64)
        if self.rank == 0:
            told = [number for action in actions[:ACTIONS_MAX] for number in action]
            sheet[0] = len(told) // 2
            sheet[1 : 1 + len(told)] = torch.tensor(told, dtype=torch.float64)
        with Guard("telling the ranks") as watch:
            dist.broadcast(sheet, src=self._first, group=self._group)
        if watch.failed:
            self._part()
            return []
        pairs = sheet[1 : 1 + 2 * int(sheet[0])].reshape(-1, 2).tolist()
        return [(int(kind), argument) for kind, argument in pairs]

    def agree_to_wait(self, wait: bool) -> bool:
        """Rank 0's word on whether a pause goes on; False where the ranks have lost each other."""
        return self._word(wait, "pausing the ranks")

    def agree_to_be_late(self, late: bool) -> bool:
        """Rank 0's word on whether steps are told one step later; ranks that differ would lose each other."""
        return self._word(late, "agreeing on when steps are told")

    def _word(self, own: bool, what: str) -> bool:
        if self.alone:
            return own
        word = torch.tensor([float(own)])
        with Guard(what) as watch:
            dist.broadcast(word, src=self._first, group=self._group)
        if watch.failed:
            self._part()
        return bool(word[0]) and not watch.failed

    def leave(self) -> None:
        """Lets go of the group when training has ended: kept beyond the training's own goodbye it would be torn
        down with the interpreter, in an order that its threads do not always survive. Waits for nobody.
        """
        group = self._group
        self._part()
        if group is not None and dist.is_initialized():
            with Guard("leaving the ranks"):
                dist.destroy_process_group(group)

    def _part(self) -> None:
        self._group, self.size = None, 1


def _written(tally: Tally) -> str:
    """An empty text where it cannot be written: the collective must take place all the same."""
    with Guard("writing a tally"):
        return json.dumps(tally.to_dict())
    return ""


def _read(text: str) -> Tally:
    with Guard("reading a rank's tally"):
        return Tally.from_dict(json.loads(text)) if text else Tally.zero()
    return Tally.zero()
