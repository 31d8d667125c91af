"""Whatever fails, nothing that was acknowledged is lost, nothing is doubled, and no trainer waits.

``make chaos`` runs `CHAOS_ROUNDS` rounds from the seed `CHAOS_SEED` on; a round is run alone by its own seed and
``CHAOS_ROUNDS=1``. Otherwise it is a short form: one round, few processes.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

from tests.chaos.rounds import Size, rounds

SHORT_SEED = 1016
"""Trainers are killed, and a collector's network is cut."""
ALL_KINDS_ROUNDS = 50
"""In so many rounds each kind of fault occurs; a few rounds have only some of them."""
pytestmark = [pytest.mark.slow, pytest.mark.postgres]


def test_nothing_is_lost_or_doubled_and_nobody_waits(tmp_path: Path) -> None:
    number = int(os.environ.get("CHAOS_ROUNDS", "1"))
    long = "CHAOS_ROUNDS" in os.environ
    chosen = random.SystemRandom().randrange(1, 1_000_000) if long else SHORT_SEED
    first = int(os.environ.get("CHAOS_SEED", chosen))
    size = Size() if long else Size(trainers=4, collectors=2, workers=1, pace_s=0.05, longest_fault_s=1.0)
    print(f"\nchaos: {number} rounds, seeds {first} to {first + number - 1}", file=sys.stderr, flush=True)
    counts = rounds(tmp_path, [first + place for place in range(number)], size)
    print(counts.show(), *counts.notes[:20], sep="\n", file=sys.stderr, flush=True)
    assert counts.faults == {}, f"{counts.show()}\nagain: CHAOS_SEED={first} CHAOS_ROUNDS={number} make chaos"
    assert min(counts.reports, counts.alerts) > 0
    never = [kind for kind, times in counts.met.items() if not times]
    assert number < ALL_KINDS_ROUNDS or not never, f"in {number} rounds there never was: {never}"
