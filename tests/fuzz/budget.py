"""How long and from which seed the attacks run: short in `make test`, long in `make fuzz` and `make fuzz-api`."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0.4"))
"""Of each target but the API."""
REQUESTS = int(os.environ.get("FUZZ_REQUESTS", "150"))
"""Of the API, on each database."""
SEED = int(os.environ.get("FUZZ_SEED", "0")) or random.randrange(1, 1 << 32)
BATCH = 200


def attack(strategy: SearchStrategy[Any], work: Callable[[Any], None], *, name: str) -> int:
    """Gives ``work`` what ``strategy`` makes for `SECONDS`; how many there were. A failure names its seed."""
    until, tried = time.monotonic() + SECONDS, 0

    def counted(made: Any) -> None:
        nonlocal tried
        tried += 1
        work(made)

    number = SEED
    while time.monotonic() < until:
        attack_batch(strategy, counted, BATCH, number)
        number += 1
    print(f"{name}: {tried} tried in {SECONDS:g} s, FUZZ_SEED={SEED}")
    return tried


def attack_batch(
    strategy: SearchStrategy[Any], work: Callable[[Any], None], count: int, number: int, *, smallest: bool = True
) -> None:
    """``count`` of what ``strategy`` makes from the seed ``number``; raises with one that fails."""

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink) if smallest else (Phase.generate,),
    )
    @given(strategy)
    def tried(made: Any) -> None:
        work(bytes(made) if isinstance(made, bytes) else made)

    try:
        tried()
    except BaseException:
        print(f"to run it again: FUZZ_SEED={number}")
        raise
