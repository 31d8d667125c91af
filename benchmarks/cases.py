"""Public failure reports, where they lie beside the repository: what the live engine says of each, and the totals.

A case counts as detected if any code of ``replay_expect`` was among the alerts, and its cause as right if the
first incident's is one that the case expects or accepts. Nothing may say a code of ``must_not``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.simulated import print_lead_times
from rlvitals_monitor.diagnosis.table import load_table
from rlvitals_monitor.importers.past_run import read_past_run
from rlvitals_monitor.replay import Replay, replay_log
from rlvitals_monitor.rules.loader import load_rules

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases"
HEALTHY_STEPS = 1000
SPOKEN = ("warning", "critical")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    name: str
    benign: bool
    silence_is_right: bool
    detected: bool
    cause_right: bool
    incident: bool
    forbidden: tuple[str, ...]
    critical: int
    early: int
    healthy_steps: int
    lead: int | None
    said: str
    expected: str


def main() -> None:
    if not CASES.exists():
        print("NOT RUN: ../shared/cases is absent")
        return
    rules = load_rules()
    cases = [
        (path, yaml.safe_load(path.read_text(encoding="utf-8"))) for path in sorted(CASES.glob("*/case.yaml"))
    ]
    scores = []
    for path, case in cases:
        if case.get("replayable"):
            past = read_past_run(path.parent / "log.txt", stride=case.get("step_stride") or 1)
            scores.append(_score(path.parent.name, case, replay_log(past, rules)))
    print(f"  {'case':44}{'expected':36}{'said (line)'}")
    for score in scores:
        mark = " " if score.detected and score.cause_right and not score.forbidden else "!"
        print(f"{mark} {score.name[:42]:44}{score.expected[:34]:36}{score.said}")
    _totals(scores)
    print_lead_times(rules)


def _score(name: str, case: dict[str, Any], found: Replay) -> Score:
    table = load_table()
    rang = [
        (found.past.lines[e.fired], e.severity.value, table.codes_of(e.alert, e.severity.value))
        for e in found.episodes
    ]
    spoken = [(line, severity, codes) for line, severity, codes in rang if severity in SPOKEN]
    wanted = {code.partition("@")[0] for code in case["replay_expect"]}
    right = wanted | {code.partition("@")[0] for code in [*case["expect"], *case["also_acceptable"]]}
    silence = "ok" in wanted | set(case["expect"])
    causes = [incident.cause for incident in found.incidents]
    codes = {code for _, _, codes in rang for code in codes}
    bad = case.get("first_bad_line")
    until = bad if bad is not None else found.past.count + 1
    early = sum(1 for line, _, _ in spoken if line < until)
    first = next((line for line, _, codes in spoken if set(codes) & right), None)
    # an early sign of the very fault is no false alarm: it is the lead
    early_right = sum(1 for line, _, codes in spoken if line < until and set(codes) & right and not case["benign"])
    return Score(
        name=name,
        benign=case["benign"],
        silence_is_right=silence,
        detected=bool(codes & wanted) or (silence and not spoken),
        cause_right=causes[0] in right if causes else silence,
        incident=bool(causes),
        forbidden=tuple(sorted({code for _, _, codes in spoken for code in codes} & set(case["must_not"]))),
        critical=sum(1 for _, severity, _ in spoken if severity == "critical"),
        early=early - early_right,
        healthy_steps=until - 1 if bad is not None else found.past.count,
        lead=bad - first if bad is not None and first is not None and found.past.count > 30 else None,
        said=", ".join(f"{'/'.join(codes)} {severity[0]} ({line})" for line, severity, codes in spoken[:4])
        or "quiet",
        expected=", ".join(case["replay_expect"]),
    )


def _totals(scores: list[Score]) -> None:
    bad = [s for s in scores if not s.benign]
    benign = [s for s in scores if s.benign]
    told = [s for s in bad if s.incident]
    healthy = sum(s.healthy_steps for s in scores)
    early = sum(s.early for s in scores)
    print(f"\ndetected {sum(s.detected for s in bad)} of {len(bad)} failures (goal 95 %)")
    print(f"first incident's cause right {sum(s.cause_right for s in told)} of {len(told)} (goal 85 %)")
    print(f"benign cases: {sum(s.said != 'quiet' for s in benign)} of {len(benign)} with a warning,", end=" ")
    print(f"{sum(s.critical > 0 for s in benign)} with a critical alert (goal 0)")
    print(f"codes of must_not said: {sum(len(s.forbidden) for s in scores)} (goal 0)")
    print(f"false alarms on {healthy} healthy steps: {early}", end=" ")
    print(f"= {1000 * early / max(healthy, 1):.2f} per 1,000 (goal 1)")
    leads = [(s.name[:3], s.lead) for s in scores if s.lead is not None]
    print("lead in steps before the first bad line:", ", ".join(f"{name} {lead:+d}" for name, lead in leads))


if __name__ == "__main__":
    main()
