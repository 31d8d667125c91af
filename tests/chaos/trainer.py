"""A training loop that knows only the client, until its input ends: ``trainer.py RUN LEDGER PACE_S SKEW_S``.

The ledger has a line for each step (what `report` took, seconds) and for each command that was carried out. After
a ``kill -9`` the next process of the run goes on behind the last step of the ledger, as from a checkpoint.
"""

from __future__ import annotations

import json
import math
import select
import sys
import time
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
            began = perf_counter()
            vitals.report(step, values(step))
            if step % TEXT_EVERY == 0:
                vitals.text(step, 0, f"completion of step {step}")
            for command in vitals.control.take(step):
                lines.write(json.dumps({"applied": command.id, "step": step}) + "\n")
                vitals.control.applied(command, step=step)
            took = perf_counter() - began
            lines.write(json.dumps({"step": step, "took_s": took, "dropped": vitals.counters["dropped"]}) + "\n")
    vitals.close()


def values(step: int) -> dict[str, float]:
    """One number of each kind; the truncation rate goes up and down, so that alerts come and go."""
    odd = {0: math.nan, 1: math.inf, 2: -math.inf}
    return {
        "policy.loss": 1 / step,
        "length.truncation_rate": float(step % 40 < 20),
        "own.number": odd.get(step % 50, float(step)),
    }


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
