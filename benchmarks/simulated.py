"""Simulated runs with a planted fault: when it began, what warned first, when the run collapsed.

A run has collapsed at its first non-finite number, or where its own success (exponential mean of 10 steps) is
below 0.6 of its level before the fault.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from rlvitals.contract.alert import Severity
from rlvitals_monitor.alerts.replay import episodes, replay
from rlvitals_monitor.rules.rule import Rule
from tests.monitor.alerts.recorded import DATA, toy

FAULT_AT = 60
EARLIER = {"byte_hack": 20}
LEVEL_STEPS = 10
LOST = 0.6


def print_lead_times(rules: Sequence[Rule]) -> None:
    """One line a run; healthy ones have no fault and should have no warning."""
    print(f"\n{'simulated run':18}{'fault':>6}{'warned':>8}{'collapse':>10}{'lead':>6}  first warnings")
    for path in sorted(DATA.glob("*.csv")):
        healthy = path.stem.startswith("healthy")
        fault = None if healthy else EARLIER.get(path.stem, FAULT_AT)
        found = [e for e in episodes(replay(rules, toy(path.stem), {})) if e.severity is not Severity.INFO]
        false = [e for e in found if fault is None or e.fired < fault]
        after = [e for e in found if e not in false]
        warned = after[0].fired if after else None
        fell = None if fault is None else collapse(path, fault)
        lead = fell - warned if fell is not None and warned is not None else None
        told = ", ".join(f"{e.alert} ({e.fired})" for e in after[:3]) or "none"
        bad = f"  FALSE: {', '.join(e.alert for e in false)}" if false else ""
        cells = "".join(
            f"{_cell(number):>{width}}" for number, width in ((fault, 6), (warned, 8), (fell, 10), (lead, 6))
        )
        print(f"{path.stem:18}{cells}  {told}{bad}")


def collapse(path: Path, fault: int) -> int | None:
    """The step of it, or None where the run does not fall."""
    with path.open(encoding="utf-8") as file:
        rows = [(int(row["step"]), _number(row["gold"]), _number(row["loss"])) for row in csv.DictReader(file)]
    before = [gold for step, gold, _ in rows if fault - LEVEL_STEPS <= step < fault]
    limit, level = LOST * sum(before) / len(before), math.nan
    for step, gold, loss in rows:
        level = gold if level != level else level + (gold - level) * 2 / (LEVEL_STEPS + 1)
        if step >= fault and (not math.isfinite(loss) or level < limit):
            return step
    return None


def _number(text: str) -> float:
    return float(text) if text else math.nan


def _cell(number: int | None) -> str:
    return "-" if number is None else str(number)
