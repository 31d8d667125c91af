"""A training loop that knows only the client, until its input ends: ``trainer.py RUN LEDGER PACE_S SKEW_S``.

The ledger has a line for each step (what the calls took, seconds, and how much of that the process was ready to
run and had no core) and for each command that was carried out. After a ``kill -9`` the next process of the run
goes on behind the last step of the ledger, as from a checkpoint.
"""

from __future__ import annotations

import json
import math
import select
import sys
import time
from contextlib import suppress
from pathlib import Path
from time import perf_counter

TEXT_EVERY = 20
CHECKPOINT = {"checkpoint": ""}


def main(run: str, ledger: Path, pace_s: float, skew_s: float) -> None:
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
            began, starved_s = perf_counter(), without_core_s()
            vitals.report(step, values(step))
            if step % TEXT_EVERY == 0:
                vitals.text(step, 0, f"completion of step {step}")
            for command in vitals.control.take(step):
                lines.write(json.dumps({"applied": command.id, "step": step}) + "\n")
                vitals.control.applied(command, step=step)
            took = perf_counter() - began
            told = {"took_s": took, "starved_s": without_core_s() - starved_s}
            lines.write(json.dumps({"step": step, **told, "dropped": vitals.counters["dropped"]}) + "\n")
    vitals.close()


def values(step: int) -> dict[str, float]:
    """One number of each kind; the truncation rate goes up and down, so that alerts come and go."""
    odd = {0: math.nan, 1: math.inf, 2: -math.inf}
    return {
        "policy.loss": 1 / step,
        "length.truncation_rate": float(step % 40 < 20),
        "own.number": odd.get(step % 50, float(step)),
    }


def without_core_s() -> float:
    """How long the threads of this process have waited for a core, together; 0 where the kernel does not tell."""
    total = 0
    for thread in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError):
            total += int(thread.read_text().split()[1])
    return total / 1e9


def last_step(ledger: Path) -> int:
    if not ledger.exists():
        return 0
    return max((json.loads(line).get("step", 0) for line in whole_lines(ledger)), default=0)


def whole_lines(ledger: Path) -> list[str]:
    """Without the last one where a kill tore it."""
    text = ledger.read_text()
    return text[: text.rfind("\n") + 1].splitlines()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
