"""``rlvitals replay LOG``: what would have rung over a log, when and why, and which rules lacked a signal."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlvitals.contract import codec
from rlvitals.contract.alert import Truth, limit_of
from rlvitals.formats.log import Format
from rlvitals.formats.steps import stride
from rlvitals.progress import ProgressBar
from rlvitals.screen import print_report, printable
from rlvitals_monitor.alerts.judge import Judgement, judge_step, order
from rlvitals_monitor.alerts.memory import AttemptMemory, begin
from rlvitals_monitor.alerts.replay import Episode, Step, episodes
from rlvitals_monitor.alerts.settings import RuleSettings
from rlvitals_monitor.alerts.short import SHORT, shorten
from rlvitals_monitor.diagnosis.diagnose import Incident, diagnose, one_of_each
from rlvitals_monitor.diagnosis.fired import Fired
from rlvitals_monitor.diagnosis.table import load_table
from rlvitals_monitor.importers.past_run import PastRun, read_past_run
from rlvitals_monitor.rules.document import RuleFileError
from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.rules.rule import Rule

BAR_BYTES = 1 << 25
"""A log from here on takes long enough to show how far its reading is."""
SPARKS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """``dormant``: rule → why it could say nothing at the last step. ``judged``: how many could.

    ``curves``: metric → sparkline.
    """

    past: PastRun
    episodes: tuple[Episode, ...]
    incidents: tuple[Incident, ...]
    dormant: dict[str, str]
    judged: int
    curves: dict[str, str]

    def to_dict(self) -> dict[str, object]:
        """JSON-safe; numbers that are not finite are spelt out."""
        table = load_table()
        return {
            "steps": self.past.count,
            "format": self.past.format.value,
            "alerts": [
                {
                    "alert": e.alert,
                    "severity": e.severity.value,
                    "step": e.fired,
                    "line": self.past.lines[e.fired],
                    "resolved_step": e.resolved,
                    "value": codec.encode(e.judgement.evaluation.value),
                    "threshold": codec.encode(e.judgement.evaluation.threshold),
                    "metric": e.judgement.evaluation.metric,
                    "codes": list(table.codes_of(e.alert, e.severity.value)),
                }
                for e in self.episodes
            ],
            "incidents": [
                {
                    "cause": i.cause,
                    "severity": i.severity.value,
                    "onset_step": i.onset_step,
                    "headline": i.headline,
                    "confidence": i.confidence,
                    "evidence": list(i.evidence),
                    "advice": i.advice,
                    "change": dict(i.change),
                    "not": i.isnt,
                    "alerts": list(i.alerts),
                }
                for i in self.incidents
            ],
            "dormant": [{"rule": rule, "reason": reason} for rule, reason in self.dormant.items()],
            "unknown_metrics": self.past.unknown,
            "notes": dict(self.past.merger.notes),
            "bad_lines": [{"line": b.line, "reason": b.reason, "text": b.text} for b in self.past.bad_lines],
            "bad_line_count": self.past.bad_count,
        }


def replay_log(past: PastRun, rules: Sequence[Rule], config: dict[str, object] | None = None) -> Replay:
    """Judges a log as the live engine would have. Raises ValueError where the log is not of its format."""
    head: list[Step] = []
    for step in past.steps:
        head.append(step)
        if len(head) > SHORT:
            break
    settings = {"steps_counted": int(past.counted), **(config or {})}
    ordered = order(shorten(rules, len(head)))
    memory = begin(ordered, settings)
    curves = _Curves()
    changes: list[Judgement] = []
    for step in head:
        changes += _judge(ordered, memory, step, curves)
    for step in past.steps:
        changes += _judge(ordered, memory, step, curves)
    found = episodes(changes)
    dormant = {key: e.reason for key, e in memory.evaluations.items() if e.truth is Truth.UNKNOWN}
    named = {e.judgement.evaluation.metric for e in found}
    return Replay(
        past=past,
        episodes=tuple(found),
        incidents=tuple(one_of_each(diagnose(map(fired_of, found)))),
        dormant=dormant,
        judged=len(memory.evaluations) - len(dormant),
        curves={name: curves.draw(name) for name in sorted(named) if name},
    )


def fired_of(episode: Episode) -> Fired:
    """An episode as diagnosis takes it."""
    evaluation = episode.judgement.evaluation
    return Fired(
        alert=episode.alert,
        severity=episode.severity,
        fired=episode.fired,
        resolved=episode.resolved,
        metric=evaluation.metric,
        value=evaluation.value,
        threshold=evaluation.threshold,
        measured=evaluation.measured,
        limit=limit_of(evaluation.sign),
    )


def _judge(rules: Sequence[Rule], memory: AttemptMemory, step: Step, curves: _Curves) -> list[Judgement]:
    curves.add(step)
    return judge_step(rules, memory, *step)


class _Curves:
    """The course of every metric in at most 64 points: when it is full, each pair becomes its larger one."""

    def __init__(self) -> None:
        self._points: dict[str, list[float]] = {}
        self._seen: dict[str, int] = {}
        self._every: dict[str, int] = {}

    def add(self, step: Step) -> None:
        for name, value in step[2].items():
            points = self._points.setdefault(name, [])
            seen = self._seen[name] = self._seen.get(name, 0) + 1
            every = self._every.setdefault(name, 1)
            if points and seen % every:
                points[-1] = _larger(points[-1], value)
                continue
            points.append(value)
            if len(points) >= 2 * SPARK_WIDTH:
                points[:] = [_larger(*points[at : at + 2]) for at in range(0, len(points), 2)]
                self._every[name] = 2 * every

    def draw(self, name: str) -> str:
        return sparkline(self._points.get(name, []))


def _larger(a: float, b: float) -> float:
    """A number that is not finite is never hidden by one that is."""
    if not math.isfinite(a) or not math.isfinite(b):
        return a if not math.isfinite(a) else b
    return max(a, b)


def sparkline(points: Sequence[float]) -> str:
    """One character a point: bars, ``!`` for NaN, ``^`` and ``v`` for the infinities."""
    finite = [point for point in points if math.isfinite(point)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    return "".join(_spark(point, low, high) for point in points)


def _spark(point: float, low: float, high: float) -> str:
    if not math.isfinite(point):
        return "!" if point != point else "^" if point > 0 else "v"
    # halves, since the span of the widest doubles is none
    span = high / 2 - low / 2
    return SPARKS[min(7, int((point / 2 - low / 2) / span * 8))] if span else SPARKS[0]


def main(argv: Sequence[str]) -> int:
    """0: replayed; 1: something critical would have rung; 2: the log or the rules could not be read, or the log
    holds no step."""
    told = _parser().parse_args(argv)
    try:
        rules = load_rules(told.rules) if told.rules else RuleSettings().load()
        size = told.log.stat().st_size
        bar = ProgressBar(sys.stderr if size >= BAR_BYTES else None, "reading")
        past = read_past_run(
            told.log, stride=told.every, form=told.format, run=told.run, seen=lambda read: bar(read, size)
        )
        found = replay_log(past, rules)
        bar.close()
    except (OSError, ValueError, RuleFileError) as error:
        sys.stderr.write(f"rlvitals replay: {error}\n")
        return 2
    text = json.dumps(found.to_dict(), indent=2) + "\n" if told.json else timeline(found)
    code = print_report(text, "rlvitals replay", int(any(e.severity.value == "critical" for e in found.episodes)))
    if not past.count:
        read = f"{told.log} (read as {past.format.value})"
        sys.stderr.write(f"rlvitals replay: no training step was found in {read}\n")
        return 2
    return code


def timeline(found: Replay) -> str:
    """What a person reads."""
    past = found.past
    out = [f"{past.format.value}, {past.count} steps, {past.bad_count} broken lines"]
    out += [_incident(number, incident) for number, incident in enumerate(found.incidents, 1)]
    if found.episodes:
        out.append("\nWhen what would have rung:")
        out += [f"  {_episode(e, past)}" for e in found.episodes]
    elif past.count:
        out.append(f"\n{_quiet(found)}")
    out += [f"  {curve}  {name}" for name, curve in found.curves.items()]
    if found.dormant:
        out.append(f"\nQuiet for want of a signal: {len(found.dormant)} rules (--json lists each with its reason)")
        out += [f"  {rule}: {reason}" for rule, reason in list(found.dormant.items())[:5]]
    if past.unknown:
        out.append(f"\nNames kept as they are: {_some(past.unknown)}")
    out += [f"line {bad.line}: {bad.reason}: {printable(bad.text)}" for bad in past.bad_lines[:10]]
    return "\n".join(out) + "\n"


def _quiet(found: Replay) -> str:
    if found.judged:
        return f"Nothing would have rung, by the {found.judged} rules that could be judged at the end."
    return "Nothing could be judged: the log holds too few of the signals, or of the steps, that any rule needs."


def _incident(number: int, incident: Incident) -> str:
    lines = [
        f"\n{number}. {incident.headline}: {incident.cause} ({incident.severity.value}, from step "
        f"{incident.onset_step}, confidence {incident.confidence})"
    ]
    lines += [f"   {text}" for text in incident.evidence]
    lines.append(f"   → {incident.advice}")
    lines += [f"     {trainer}: {what}" for trainer, what in incident.change]
    if incident.isnt:
        lines.append(f"   {incident.isnt}")
    return "\n".join(lines)


def _episode(episode: Episode, past: PastRun) -> str:
    told = episode.judgement.evaluation.told
    value = f"  {told}" if told else ""
    end = "open at the end" if episode.resolved is None else f"to step {episode.resolved}"
    where = f" (line {past.lines[episode.fired]})"
    return f"step {episode.fired}{where}: {episode.severity.value} {episode.alert}, {end}{value}"


def _some(names: Sequence[str], most: int = 20) -> str:
    more = f" … and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(printable(name) for name in names[:most]) + more


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rlvitals replay", description="What would have rung over a log: when, why, and what was quiet."
    )
    parser.add_argument("log", type=Path, help="a console log, trainer_state.json, JSON lines, CSV, event file, …")
    parser.add_argument("--rules", action="append", type=Path, default=[], help="own rule files; repeatable")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    parser.add_argument(
        "--every", type=stride, default=1, metavar="N", help="steps between lines that say no step"
    )
    parser.add_argument("--format", type=Format, help=f"if sniffing errs: {', '.join(f.value for f in Format)}")
    parser.add_argument("--run", help="which run of a tracker's file (default: the newest)")
    return parser
