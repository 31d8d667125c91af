"""A training loop that knows only the client, until its input ends: ``trainer.py RUN LEDGER PACE_S SKEW_S TEXTS``.

The ledger has a line for each command that was carried out and for each step: what the calls took, how much of
that the process was ready to run and had no core (seconds), and whether the journal is on disk. After a kill
the next process of the run goes on behind the last step of the ledger, as from a checkpoint. The file beside it
that ends in ``.stacks`` has where all threads stood whenever the calls of a step took too long, and on SIGUSR1.
With TEXTS completions are so long and so many that a full disk is met soon.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import select
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

TEXT_EVERY, LONG_TEXT_EVERY = 20, 3
PAGE = 4096
TASKS = "/proc/self/task"
CHECKPOINT = {"checkpoint": ""}
LONGEST_CALL_S = 2.0
"""Of all calls of a step, without the time in which the machine had no core for the trainer: dozens of processes
share a few. A wait for the dead service would last its time-out, and sleeps."""


def main(run: str, ledger: Path, pace_s: float, skew_s: float, long_texts: bool) -> None:
    stacks = ledger.with_suffix(".stacks").open("a")
    faulthandler.register(signal.SIGUSR1, file=stacks)
    if skew_s:
        true_time = time.time
        time.time = lambda: true_time() + skew_s
    import rlvitals

    vitals = rlvitals.init(run=run)
    vitals.describe(capabilities=CHECKPOINT)
    step = last_step(ledger)
    with ledger.open("a", buffering=1) as lines:
        while not select.select([sys.stdin], [], [], pace_s)[0]:
            step += 1
            before = without_core_s()  # ahead of the clock: what is waited here is no part of the calls
            faulthandler.dump_traceback_later(LONGEST_CALL_S, file=stacks)
            began = perf_counter()
            vitals.report(step, values(step))
            if step % (LONG_TEXT_EVERY if long_texts else TEXT_EVERY) == 0:
                vitals.text(step, 0, f"completion of step {step}" + "." * PAGE * long_texts)
            for command in vitals.control.take(step):
                lines.write(json.dumps({"applied": command.id, "step": step}) + "\n")
                vitals.control.applied(command, step=step)
            took = perf_counter() - began
            faulthandler.cancel_dump_traceback_later()
            starved = starved_s(before, without_core_s())
            told = {"took_s": took, "starved_s": starved, "on_disk": on_disk(vitals)}
            lines.write(json.dumps({"step": step, **told, "dropped": vitals.counters["dropped"]}) + "\n")
    vitals.close()


def on_disk(vitals: Any) -> bool:
    """False while some of it is in memory, as on a full disk, where a kill -9 takes it along."""
    journal = vitals._journal
    return bool(journal.well and not journal._memory)


def values(step: int) -> dict[str, float]:
    """One number of each kind; the truncation rate goes up and down, so that alerts come and go."""
    odd = {0: math.nan, 1: math.inf, 2: -math.inf}
    return {
        "policy.loss": 1 / step,
        "length.truncation_rate": float(step % 40 < 20),
        "own.number": odd.get(step % 50, float(step)),
    }


def without_core_s() -> dict[str, float]:
    """How long each thread of this process has waited for a core; {} where the kernel does not tell."""
    found = {}
    for thread in os.listdir(TASKS) if os.path.isdir(TASKS) else ():
        with suppress(OSError), open(f"{TASKS}/{thread}/schedstat") as told:
            found[thread] = int(told.read().split()[1]) / 1e9
    return found


def starved_s(before: dict[str, float], after: dict[str, float]) -> float:
    """How long the training thread and one that it may have waited for had no core, each in its turn."""
    waited = {thread: seconds - before.get(thread, 0.0) for thread, seconds in after.items()}
    own = waited.pop(str(threading.get_native_id()), 0.0)
    return own + max(waited.values(), default=0.0)


def last_step(ledger: Path) -> int:
    if not ledger.exists():
        return 0
    return max((json.loads(line).get("step", 0) for line in whole_lines(ledger)), default=0)


def whole_lines(ledger: Path, tail_bytes: int = 0) -> list[str]:
    """Without the last one where a kill tore it; with ``tail_bytes`` those that lie within so much of the end."""
    with ledger.open("rb") as file:
        start = max(0, ledger.stat().st_size - tail_bytes) if tail_bytes else 0
        file.seek(start)
        text = file.read().decode()
    lines = text[: text.rfind("\n") + 1].splitlines()
    return lines[1:] if start else lines


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]), bool(sys.argv[5]))
