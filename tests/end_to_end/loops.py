"""Training loops without any framework, each a process of its own: ``python loops.py die|go_on RUN``.

Only the client is imported, as where a real training job runs.
"""

from __future__ import annotations

import json
import math
import os
import select
import signal
import sys
from collections.abc import Callable
from time import perf_counter

import rlvitals

PACE_S = 1 / 30
TEXT_EVERY = 50
WHY_MISSING = "this loop has no old policy"


def die(run: str, steps: str) -> None:
    """``kill -9`` right after the last of ``steps`` reports, which holds one number of each kind."""
    vitals = rlvitals.init(run=run)
    for step in range(1, int(steps)):
        vitals.report(step, {"policy.loss": step / 2})
    vitals.report(
        int(steps),
        {"policy.loss": math.nan, "reward.mean": math.inf, "reward.min": -math.inf, "length.mean": 7.5},
        missing={"ratio.max": WHY_MISSING},
    )
    os.kill(os.getpid(), signal.SIGKILL)


def go_on(run: str) -> None:
    """Prints a line per step until its standard input ends; then delivers, and prints what became of it.

    The truncation rate goes up and down, so that alerts fire and resolve all the time.
    """
    vitals = rlvitals.init(run=run)
    step, last = 0, perf_counter()
    while not select.select([sys.stdin], [], [], PACE_S)[0]:
        step += 1
        began = perf_counter()
        vitals.report(step, {"policy.loss": 1 / step, "length.truncation_rate": float(step % 60 < 30)})
        if step % TEXT_EVERY == 0:
            vitals.text(step, 0, f"completion of step {step}")
        now = perf_counter()
        print(json.dumps({"step": step, "report_s": now - began, "step_s": now - last}), flush=True)
        last = now
    flushed = vitals.flush(60.0)
    dropped = vitals.counters["dropped"]
    vitals.close()
    print(json.dumps({"steps": step, "flushed": flushed, "dropped": dropped}), flush=True)


LOOPS: dict[str, Callable[..., None]] = {"die": die, "go_on": go_on}

if __name__ == "__main__":
    LOOPS[sys.argv[1]](*sys.argv[2:])
