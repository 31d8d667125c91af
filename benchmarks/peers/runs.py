"""Public failure reports and simulated runs, through every monitor, side by side."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence

from benchmarks.cases import CASES, Case, replayable, score_replay
from benchmarks.peers.asked import Answer, PeerStep, ask
from benchmarks.peers.environments import VERSIONS
from benchmarks.scoring import SPOKEN, Rang, Score, score, totals
from benchmarks.simulated import EARLIER, FAULT_AT, collapse
from rlvitals_monitor.alerts.replay import Step, episodes, replay
from rlvitals_monitor.diagnosis.table import load_table
from rlvitals_monitor.importers.past_run import PastRun, read_past_run
from rlvitals_monitor.replay import replay_log
from rlvitals_monitor.rules.loader import load_rules
from tests.monitor.alerts.recorded import DATA, toy

OURS = "rlvitals"
WIDTH = 32
LEGEND = """\
  ✓ a code that the log supports, or rightly quiet; ? another code; · quiet where it should ring; ✗ a code that
  must not be said, or a warning on a benign run. In brackets the record of the log. A lead counts from the
  first code that is true of the run, however early: who rings on healthy runs too has a long one.
"""


def print_cases() -> None:
    """One line a case, one column a monitor; then what each total comes to, and what each could not take."""
    if not CASES.exists():
        print("NOT RUN: ../shared/cases is absent")
        return
    rules = load_rules()
    cases: dict[str, Case] = {}
    runs: dict[str, list[PeerStep]] = {}
    scores: dict[str, list[Score]] = {OURS: []}
    for name, case, past in replayable():
        scores[OURS].append(score_replay(name, case, replay_log(past, rules)))
        again = read_past_run(CASES / name / "log.txt", stride=case.get("step_stride") or 1)
        cases[name], runs[name] = case, _peer_steps(again)
    answers = {peer: ask(peer, runs) for peer in VERSIONS}
    for peer, told in answers.items():
        scores[peer] = [_score(name, cases[name], told[name], len(runs[name])) for name in cases]
    print(LEGEND)
    print(f"  {'case':42}" + "".join(f"{monitor:{WIDTH}}" for monitor in scores).rstrip())
    for row in zip(*scores.values(), strict=True):
        print(f"  {row[0].name[:40]:42}" + "".join(_cell(one) for one in row).rstrip())
    _print_totals(scores)
    for peer, told in answers.items():
        _print_left(peer, told)


def _peer_steps(past: PastRun) -> list[PeerStep]:
    steps = list(past.steps)
    logged = {metric: name for name, metric in past.merger.names.items()}
    return [
        (past.lines[step], step, values, {logged[n]: v for n, v in values.items() if n in logged})
        for step, _, values in steps
    ]


def _score(name: str, case: Case, answer: Answer, count: int) -> Score:
    return score(name, case, answer.rang, [one.codes for one in answer.rang if one.severity in SPOKEN], count)


def _cell(one: Score) -> str:
    wrong = bool(one.forbidden) or (one.benign and one.said != "quiet")
    mark = "✗" if wrong else "✓" if one.detected else "·" if one.said == "quiet" else "?"
    first = re.sub(r"/\S+", "", one.said.partition(",")[0])
    return f"{f'{mark} {first}'[: WIDTH - 1]:{WIDTH}}"


def _print_totals(scores: Mapping[str, Sequence[Score]]) -> None:
    print(f"\n  {'':42}" + "".join(f"{monitor:>14}" for monitor in scores))
    found = [totals(of_one) for of_one in scores.values()]
    rows = [
        ("failures detected", [f"{t.detected} of {t.failures}" for t in found]),
        ("first cause right, where one is told", [f"{t.caused} of {t.told}" for t in found]),
        ("benign runs with a warning", [f"{t.benign_warned} of {t.benign}" for t in found]),
        ("benign runs with a critical alert", [f"{t.benign_critical} of {t.benign}" for t in found]),
        ("codes that must not be said", [str(t.forbidden) for t in found]),
        ("false alarms per 1,000 healthy steps", [f"{t.early_per_thousand:.2f}" for t in found]),
    ]
    for what, cells in rows:
        print(f"  {what:42}" + "".join(f"{cell:>14}" for cell in cells))
    print(f"  lead before the first bad line: {'; '.join(f'{m}: {_leads(of)}' for m, of in scores.items())}")


def _leads(scores: Sequence[Score]) -> str:
    return ", ".join(f"{s.name[:3]} {s.lead:+d}" for s in scores if s.lead is not None) or "none"


def _print_left(peer: str, told: Mapping[str, Answer]) -> None:
    left = sorted({name for answer in told.values() for name in answer.left})
    signals = [name for name in left if "/" not in name and "." in name]
    print(f"  {peer} has no place for {len(left)} of the names; of the signals: {', '.join(signals)}")


def print_simulated() -> None:
    """One line a run: when each monitor first warned after the fault, its lead over the collapse, false alarms."""
    paths = sorted(DATA.glob("*.csv"))
    if not paths:
        print("NOT RUN: ../shared/research/signals/data is absent")
        return
    rules = load_rules()
    table = load_table()
    steps = {path.stem: toy(path.stem) for path in paths}
    rang = {
        OURS: {
            name: [
                Rang(e.fired, e.severity.value, table.codes_of(e.alert, e.severity.value))
                for e in episodes(replay(rules, run, {}))
            ]
            for name, run in steps.items()
        }
    }
    runs = {path.stem: _simulated_steps(steps[path.stem], _gold(path.stem)) for path in paths}
    for peer in VERSIONS:
        rang[peer] = {name: list(answer.rang) for name, answer in ask(peer, runs).items()}
    print(
        f"\n  {'simulated run':20}{'fault':>6}{'collapse':>10}  "
        + "".join(f"{m:{WIDTH + 2}}" for m in rang).rstrip()
    )
    for path in paths:
        fault = None if path.stem.startswith("healthy") else EARLIER.get(path.stem, FAULT_AT)
        fell = None if fault is None else collapse(path, fault)
        cells = "".join(f"{_course(of[path.stem], fault, fell):{WIDTH + 2}}" for of in rang.values())
        print(f"  {path.stem:20}{_or_dash(fault):>6}{_or_dash(fell):>10}  {cells.rstrip()}")


def _simulated_steps(run: Sequence[Step], gold: Mapping[int, float]) -> list[PeerStep]:
    """The task's own success goes to whoever takes a held-out score."""
    return [(step, step, values, {"eval/score": gold[step]} if step in gold else {}) for step, _, values in run]


def _gold(name: str) -> dict[int, float]:
    with (DATA / f"{name}.csv").open(encoding="utf-8") as file:
        return {int(row["step"]): float(row["gold"]) for row in csv.DictReader(file) if row["gold"]}


def _course(rang: Sequence[Rang], fault: int | None, fell: int | None) -> str:
    spoken = [one for one in rang if one.severity in SPOKEN]
    false = [one for one in spoken if fault is None or one.line < fault]
    after = [one for one in spoken if one not in false]
    said = f"{after[0].codes[0]} ({after[0].line})" if after else "quiet"
    lead = f" {fell - after[0].line:+d}" if after and fell is not None else ""
    return said + lead + (f" FALSE {len(false)}" if false else "")


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
