"""Metric names, interned once a journal, and the ready-made packer for each set of names."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rlvitals.record import HEAD, MARK, STEP, Kind, bitmap_of

NAMES_MAX = 2000
"""As many as a store keeps of one run; a batch with more names would be refused as a whole."""
NAME_CHARS_MAX = 200
PLANS_MAX = 256
HEAD_BYTES = HEAD.size - 8  # all but the seq


@dataclass(frozen=True, slots=True)
class Plan:
    """How one set of names is packed: ``pack(head, seq, step, time_s, middle, *own values, *values)``.

    ``names`` are the caller's, in its order; ``order`` is None where that is the order of the bitmap.
    """

    names: tuple[str, ...]
    pack: Callable[..., bytes]
    head: bytes
    middle: bytes
    order: tuple[int, ...] | None


class Names:
    """A table that only grows: a name's number is its place in ``table``. ``own`` names open each step."""

    def __init__(self, own: Sequence[str] = ()) -> None:
        self.own = tuple(own)
        self.table: list[str | None] = list(own)
        self.index: dict[str, int] = {name: number for number, name in enumerate(own)}
        self._plans: dict[tuple[str, ...], Plan] = {}

    def plan(self, names: tuple[str, ...]) -> Plan | None:
        """The packer for these names, if they have been seen together in this order."""
        return self._plans.get(names)

    def admit(self, names: Iterable[object]) -> tuple[list[str], list[str]]:
        """Interns what is new. Returns (new names, refused ones: not text, too long, too many)."""
        new: list[str] = []
        refused: list[str] = []
        for name in names:
            if isinstance(name, str) and name in self.index:
                continue
            if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARS_MAX or len(self.table) >= NAMES_MAX:
                refused.append(name)  # type: ignore[arg-type]  # a key of any type, handed back as it came
                continue
            self.index[name] = len(self.table)
            self.table.append(name)
            new.append(name)
        return new, refused

    def make_plan(self, names: tuple[str, ...]) -> Plan:
        """Builds and keeps the packer for names that were admitted, differ from each other and are not ours."""
        numbers = [self.index[name] for name in names]
        bitmap = bitmap_of([*range(len(self.own)), *numbers])
        order = tuple(sorted(range(len(numbers)), key=numbers.__getitem__))
        count = len(self.own) + len(numbers)
        length = STEP.size + len(bitmap) + 8 * count
        plan = Plan(
            names=names,
            pack=struct.Struct(f"<{HEAD_BYTES}sQqd{2 + len(bitmap)}s{count}d").pack,
            head=HEAD.pack(MARK, Kind.STEP, length, 0)[:HEAD_BYTES],
            middle=len(bitmap).to_bytes(2, "little") + bitmap,
            order=None if order == tuple(range(len(numbers))) else order,
        )
        if len(self._plans) >= PLANS_MAX:
            self._plans.clear()
        self._plans[names] = plan
        return plan
