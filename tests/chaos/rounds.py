"""Rounds of chaos over one cluster, each by a seed of its own, and the counts at the end."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from rlvitals_monitor.alerts.settings import RuleSettings
from rlvitals_monitor.errors import Conflict
from tests.chaos import verdict
from tests.chaos.cluster import TWIN, Cluster, cluster
from tests.chaos.evidence import keep_evidence
from tests.chaos.faults import plan, suffer
from tests.chaos.postgres import running
from tests.chaos.verdict import Counts
from tests.end_to_end.server import wait_until

COMMANDS_A_ROUND = 3
CATCH_UP_S = 90.0
JUDGED_S = 120.0
"""A run that could not be judged is left alone for 30 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    trainers: int = 20
    collectors: int = 3
    workers: int = 2
    pace_s: float = 0.2
    longest_fault_s: float = 2.5


def rounds(folder: Path, seeds: list[int], size: Size) -> Counts:
    """Prints a line for each round; the counts are of all rounds together."""
    chance = random.Random(seeds[0])
    skews = {f"collector{chance.randrange(size.collectors)}": chance.choice([-1, 1]) * chance.uniform(30, 300)}
    for number in chance.sample(range(size.trainers), max(1, size.trainers // 4)):
        skews[f"trainer{number}"] = chance.choice([-1, 1]) * chance.uniform(60, 7200)
    with (
        running() as postgres,
        cluster(
            folder,
            postgres,
            trainers=size.trainers,
            collectors=size.collectors,
            workers=size.workers,
            skews=skews,
            pace_s=size.pace_s,
        ) as made,
    ):
        lost, hung, met = 0, 0, Counter[str]()
        _catch_up(made, verdict.last_steps(made))
        for seed in seeds:
            began = time.monotonic()
            chosen = plan(seed, size.longest_fault_s)
            met.update(chosen.kinds)
            before = verdict.last_steps(made)
            _ask(made, chosen.chance)
            suffer(made, chosen, threading.Event())
            healed = verdict.last_steps(made)
            ill_s = time.monotonic() - began
            stood = [name for name, step in healed.items() if step <= before[name]]
            _catch_up(made, healed)
            hung += len([name for name in stood if verdict.last_steps(made)[name] <= before[name]])
            lost += verdict.acknowledged_lost(made)
            _say(
                f"  seed {seed}: {', '.join(chosen.kinds)}; {ill_s:.1f} + {time.monotonic() - began - ill_s:.1f} s"
            )
        counts = _end(made)
    counts.acknowledged_lost += lost
    counts.hung += hung
    _say(f"  {', '.join(f'{kind} {times}' for kind, times in sorted(met.items()))}")
    return counts


def _ask(made: Cluster, chance: random.Random) -> None:
    for _ in range(COMMANDS_A_ROUND):
        run = chance.choice(made.trainers).run
        with contextlib.suppress(Conflict):  # one of the kind is under way
            made.ask_checkpoint(run)


def _catch_up(made: Cluster, goal: dict[str, int]) -> None:
    """All is healed: every trainer steps on, and what it had reported by then arrives."""
    wait_until(lambda: all(server.answers() for server in made.servers), "all processes to answer", CATCH_UP_S)
    wanted = {trainer.run: max(goal[trainer.ledger.stem], 1) for trainer in made.trainers if trainer.run != TWIN}

    def arrived() -> bool:
        stored = verdict.stored_steps(made)
        return all(stored.get(run, 0) >= step for run, step in wanted.items())

    wait_until(arrived, f"{len(wanted)} runs to catch up (see {made.folder})", CATCH_UP_S)


def _end(made: Cluster) -> Counts:
    for trainer in made.trainers:
        trainer.close_input()
    for trainer in made.trainers:
        assert trainer.process is not None
        trainer.process.wait(60)
    for spool in {trainer.spool for trainer in made.trainers}:
        wait_until(lambda spool=spool: made.sync(spool) == 0, f"{spool} to be sent", CATCH_UP_S)  # type: ignore[misc]
    wait_until(lambda: verdict.unjudged(made) == 0, "all steps to be judged", JUDGED_S)
    counts = verdict.judge(made, RuleSettings().load())
    if counts.faults:
        _say(f"  {keep_evidence(made)} has what the database said")
    return counts


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
