"""One of several processes that write one attempt of a run together."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass

from rlvitals.contract.command import CommandKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """``attempt`` is the same in all of them (empty: of one's own), ``writer`` another in each process that ever
    lives: a process that takes over from one that died counts its records anew.

    ``leads`` where the process speaks for the whole: its phase is the run's, and it says how the run ended.
    ``obeys`` are the commands that it carries out, None for all; others are left to other processes.
    """

    attempt: str = ""
    writer: str = "main"
    leads: bool = True
    obeys: frozenset[CommandKind] | None = None

    @classmethod
    def of(
        cls, role: str, attempt: str, *, leads: bool = True, obeys: Collection[CommandKind] | None = None
    ) -> Part:
        """A process of a ``role``, with a writer's name that no other process has."""
        own = f"{role}.{os.urandom(4).hex()}"
        return cls(attempt=attempt, writer=own, leads=leads, obeys=None if obeys is None else frozenset(obeys))


ALONE = Part()
