"""Rounds of chaos over one cluster, each by a seed of its own, and the counts at the end."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from rlvitals_monitor.alerts.settings import RuleSettings
from rlvitals_monitor.errors import Conflict
from tests.chaos import progress, verdict
from tests.chaos.cluster import TWIN, Cluster, cluster
from tests.chaos.evidence import keep_evidence
from tests.chaos.faults import KINDS, impossible, plan, suffer
from tests.chaos.members import Trainer
from tests.chaos.postgres import running
from tests.chaos.verdict import Counts
from tests.end_to_end.server import wait_until

COMMANDS_A_ROUND = 3
TWINS, SKEWED = "two trainers with one run id", "wrong clocks"
STEP_S, END_S = 60.0, 60.0
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
        _tell_of(impossible(made), skews)
        lost, stood, met = 0, list[str](), Counter[str]()
        _catch_up(made, progress.last_steps(made))
        for seed in seeds:
            began = time.monotonic()
            chosen = plan(seed, size.longest_fault_s)
            before = progress.last_steps(made)
            _ask(made, chosen.chance)
            struck = suffer(made, chosen, threading.Event())
            met.update(struck)
            healed = progress.last_steps(made)
            ill_s = time.monotonic() - began
            _catch_up(made, healed)
            stood += _standing(made, healed)
            after = progress.last_steps(made)
            met[TWINS] += all(after[one.ledger.stem] > before[one.ledger.stem] for one in made.of_run(TWIN))
            met[SKEWED] += bool(skews)
            lost += verdict.acknowledged_lost(made)
            told = ", ".join(kind if kind in struck else f"({kind})" for kind in chosen.kinds)
            _say(f"  seed {seed}: {told}; {ill_s:.1f} + {time.monotonic() - began - ill_s:.1f} s")
        counts = _end(made)
        counts.met = {kind: met[kind] for kind in (*KINDS, TWINS, SKEWED) if kind not in impossible(made)}
    counts.acknowledged_lost += lost
    counts.hung += len(stood)
    counts.notes += stood
    _say("  how often it really struck:")
    for kind, times in counts.met.items():
        _say(f"    {times:4d} {kind}")
    return counts


def _tell_of(kinds: list[str], skews: dict[str, float]) -> None:
    for kind in kinds:
        _say(f"  !! NOT POSSIBLE HERE (root and its mounts and namespaces are needed): {kind}")
    _say(f"  clocks wrong by: {', '.join(f'{name} {skew:+.0f} s' for name, skew in sorted(skews.items()))}")


def _standing(made: Cluster, healed: dict[str, int]) -> list[str]:
    """Trainers that make no step any more though all is healed, and where all their threads stand."""

    def behind() -> list[Trainer]:
        now = progress.last_steps(made)
        return [one for one in made.trainers if now[one.ledger.stem] <= healed[one.ledger.stem]]

    with contextlib.suppress(AssertionError):
        wait_until(lambda: not behind(), "all trainers to step on", STEP_S)
    return [f"{one.ledger.stem} stands still:\n{one.dump_stacks()}" for one in behind()]


def _ask(made: Cluster, chance: random.Random) -> None:
    stored = progress.stored_steps(made)
    runs = [trainer.run for trainer in made.trainers if trainer.run in stored]  # the others are not in yet
    for run in chance.choices(runs, k=COMMANDS_A_ROUND if runs else 0):
        with contextlib.suppress(Conflict):  # one of the kind is under way
            made.ask_checkpoint(run)


def _catch_up(made: Cluster, goal: dict[str, int]) -> None:
    """All is healed: every trainer steps on, and what it had reported by then arrives."""
    wait_until(lambda: all(server.answers() for server in made.servers), "all processes to answer", CATCH_UP_S)
    wanted = {trainer.run: max(goal[trainer.ledger.stem], 1) for trainer in made.trainers if trainer.run != TWIN}

    def arrived() -> bool:
        stored = progress.stored_steps(made)
        return all(stored.get(run, 0) >= step for run, step in wanted.items())

    wait_until(arrived, f"{len(wanted)} runs to catch up (see {made.folder})", CATCH_UP_S)


def _end(made: Cluster) -> Counts:
    for trainer in made.trainers:
        trainer.close_input()
    stood = [told for trainer in made.trainers if (told := _stays(trainer))]
    for spool in {trainer.spool for trainer in made.trainers}:
        wait_until(lambda spool=spool: not made.sync(spool), f"{spool} to be sent", CATCH_UP_S)  # type: ignore[misc]
    wait_until(lambda: progress.unjudged(made) == 0, "all steps to be judged", JUDGED_S)
    counts = verdict.judge(made, RuleSettings().load())
    counts.hung += len(stood)
    counts.notes += stood
    if counts.faults:
        _say(f"  {keep_evidence(made)} has what the database said")
    return counts


def _stays(trainer: Trainer) -> str:
    """Where it stands if it does not end when asked, "" else; it is then killed."""
    assert trainer.process is not None
    try:
        trainer.process.wait(END_S)
    except subprocess.TimeoutExpired:
        told = f"{trainer.ledger.stem} does not end:\n{trainer.dump_stacks()}"
        trainer.kill()
        return told
    return ""


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
