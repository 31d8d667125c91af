"""Public failure reports, where they lie beside the repository: what the live engine says of each, and in all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks.scoring import Rang, Score, score, totals
from benchmarks.simulated import print_lead_times
from rlvitals_monitor.diagnosis.table import load_table
from rlvitals_monitor.importers.past_run import PastRun, read_past_run
from rlvitals_monitor.replay import Replay, replay_log
from rlvitals_monitor.rules.loader import load_rules

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases"

Case = dict[str, Any]


def main() -> None:
    if not CASES.exists():
        print("NOT RUN: ../shared/cases is absent")
        return
    rules = load_rules()
    scores = [score_replay(name, case, replay_log(past, rules)) for name, case, past in replayable()]
    print(f"  {'case':44}{'expected':36}{'said (line)'}")
    for one in scores:
        print(f"{' ' if one.good else '!'} {one.name[:42]:44}{one.expected[:34]:36}{one.said}")
    _print_totals(scores)
    print_lead_times(rules)


def replayable() -> Iterator[tuple[str, Case, PastRun]]:
    """Each case whose log is in its framework's own format: name, what is known of it, its run."""
    for path in sorted(CASES.glob("*/case.yaml")):
        case = yaml.safe_load(path.read_text(encoding="utf-8"))
        if case.get("replayable"):
            yield (
                path.parent.name,
                case,
                read_past_run(path.parent / "log.txt", stride=case.get("step_stride") or 1),
            )


def score_replay(name: str, case: Case, found: Replay) -> Score:
    table = load_table()
    rang = [
        Rang(found.past.lines[e.fired], e.severity.value, table.codes_of(e.alert, e.severity.value))
        for e in found.episodes
    ]
    return score(name, case, rang, [(incident.cause,) for incident in found.incidents], found.past.count)


def _print_totals(scores: list[Score]) -> None:
    all_of_them = totals(scores)
    print(f"\ndetected {all_of_them.detected} of {all_of_them.failures} failures (goal 95 %)")
    print(f"first incident's cause right {all_of_them.caused} of {all_of_them.told} (goal 85 %)")
    print(f"benign cases: {all_of_them.benign_warned} of {all_of_them.benign} with a warning,", end=" ")
    print(f"{all_of_them.benign_critical} with a critical alert (goal 0)")
    print(f"codes of must_not said: {all_of_them.forbidden} (goal 0)")
    print(f"false alarms on {all_of_them.healthy_steps} healthy steps: {all_of_them.early}", end=" ")
    print(f"= {all_of_them.early_per_thousand:.2f} per 1,000 (goal 1)")
    leads = [(s.name[:3], s.lead) for s in scores if s.lead is not None]
    print("lead in steps before the first bad line:", ", ".join(f"{name} {lead:+d}" for name, lead in leads))


if __name__ == "__main__":
    main()
