"""Metric names, interned once a journal, and the ready-made packer for each set of names."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from rlvitals.record import STEP, bitmap_of

NAMES_MAX = 4096
NAME_CHARS_MAX = 200
PLANS_MAX = 256


@dataclass(frozen=True, slots=True)
class Plan:
    """How one set of names is packed. ``order`` is None where the values come in the order of the bitmap."""

    pack: Callable[..., bytes]
    length: int
    width: int
    bitmap: bytes
    order: tuple[int, ...] | None


class Names:
    """A table that only grows: a name's number is its place in ``table``."""

    def __init__(self) -> None:
        self.table: list[str | None] = []
        self.index: dict[str, int] = {}
        self._plans: dict[tuple[str, ...], Plan] = {}

    def plan(self, names: tuple[str, ...]) -> Plan | None:
        """The packer for these names, if they have been seen together in this order."""
        return self._plans.get(names)

    def admit(self, names: Iterable[object]) -> tuple[list[str], list[str]]:
        """Interns what is new. Returns (new names, names that had to be refused: not text, too long, too many)."""
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
        """Builds and keeps the packer for names that were all admitted and differ from each other."""
        numbers = [self.index[name] for name in names]
        bitmap = bitmap_of(numbers)
        order = tuple(sorted(range(len(numbers)), key=numbers.__getitem__))
        packer = struct.Struct(f"<4sBIQqdH{len(bitmap)}s{len(names)}d")
        plan = Plan(
            pack=packer.pack,
            length=STEP.size + len(bitmap) + 8 * len(names),
            width=len(bitmap),
            bitmap=bitmap,
            order=None if order == tuple(range(len(numbers))) else order,
        )
        if len(self._plans) >= PLANS_MAX:
            self._plans.clear()
        self._plans[names] = plan
        return plan

    def numbers(self, mapping: Mapping[str, object]) -> dict[str, int]:
        """Number by name, for the names of ``mapping`` that are interned."""
        return {name: self.index[name] for name in mapping if name in self.index}
