"""Rule tests as data: series in, alerts expected at steps. Strict, like the rules themselves.

    scenarios:
      - name: the pull of a large coefficient is named once
        config: {kl_coef: 0.5}
        series:
          kl.pull_ratio: 0.2x10 3x4 0.3x8
        alerts:
          - {alert: kl_pull_dominates, severity: warning, fires: 12, resolves: 19}

A series is a list of values, one a step from ``first`` (1) on: ``0.2`` once, ``0.2x10`` ten times, ``1+0.5x4``
four values that start at 1 and grow by 0.5, ``NaN``, ``Inf``, ``-Inf``, and ``_`` for a step without the metric.
What is not listed under ``alerts`` must not fire as a warning or worse. Information is checked where its alert is
listed there or under ``quiet: [name]``, which is how a near miss of information is written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import zip_longest
from pathlib import Path

import yaml

from rlvitals.contract.alert import Severity
from rlvitals_monitor.alerts.replay import Episode, Step, episodes, replay
from rlvitals_monitor.rules.document import Item, read_document
from rlvitals_monitor.rules.rule import Rule

MOST_STEPS = 10_000
START = datetime(2026, 1, 1, tzinfo=timezone.utc)

_WORDS = {"NaN": math.nan, "Inf": math.inf, "-Inf": -math.inf}
_NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
_PART = re.compile(rf"(_|NaN|-?Inf|{_NUMBER})(?:([+-]\d+(?:\.\d+)?(?:e-?\d+)?))?(?:x(\d{{1,5}}))?")

Expected = tuple[str, str, int, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str
    where: str
    config: dict[str, object]
    steps: tuple[Step, ...]
    expected: tuple[Expected, ...]
    quiet: frozenset[str] = frozenset()


def run_files(paths: Sequence[Path], rules: Sequence[Rule]) -> tuple[int, list[str]]:
    """How many scenarios there are, and what did not come out as they say."""
    count, problems = 0, []
    for path in paths:
        for scenario in read_scenarios(path.read_text(encoding="utf-8"), str(path)):
            count += 1
            problems += run(scenario, rules)
    return count, problems


def run(scenario: Scenario, rules: Sequence[Rule]) -> list[str]:
    """What differs from the expectation; empty when all is as it says."""
    found = episodes(replay(rules, scenario.steps, scenario.config))
    listed = {(alert, severity) for alert, severity, _, _ in scenario.expected}
    got = {
        _seen(episode)
        for episode in found
        if episode.severity is not Severity.INFO
        or (episode.alert, episode.severity.value) in listed
        or episode.alert in scenario.quiet
    }
    wanted = set(scenario.expected)
    place = f"{scenario.where}: {scenario.name}"
    return [f"{place}: expected {_say(e)}" for e in sorted(wanted - got, key=str)] + [
        f"{place}: did not expect {_say(e)}" for e in sorted(got - wanted, key=str)
    ]


def read_scenarios(text: str, file: str) -> list[Scenario]:
    """Raises `RuleFileError` with file, line and what was expected."""
    entries = read_document(text, file).mapping(("scenarios",), required=("scenarios",))
    return [_scenario(item) for item in entries["scenarios"].sequence()]


def _scenario(item: Item) -> Scenario:
    keys = ("name", "config", "first", "seconds", "series", "alerts", "quiet")
    entries = item.mapping(keys, required=("name", "series", "alerts"))
    first = entries["first"].whole(0, 10**9) if "first" in entries else 1
    seconds = entries["seconds"].whole(1, 10**6) if "seconds" in entries else 1
    return Scenario(
        name=entries["name"].text(),
        where=item.where,
        config=_config(entries.get("config")),
        steps=_steps(entries["series"], first, seconds),
        expected=tuple(_expected(entry) for entry in entries["alerts"].sequence()),
        quiet=frozenset(entry.text() for entry in entries["quiet"].sequence())
        if "quiet" in entries
        else frozenset(),
    )


def _config(item: Item | None) -> dict[str, object]:
    if item is None:
        return {}
    value = yaml.safe_load(yaml.serialize(item.node))
    if not isinstance(value, dict):
        raise item.fail("expected a mapping of settings")
    return value


def _steps(item: Item, first: int, seconds: int) -> tuple[Step, ...]:
    columns = {name: _column(entry) for name, entry in item.items()}
    rows = zip_longest(*columns.values())
    steps: list[Step] = []
    for place, row in enumerate(rows):
        values = {name: value for name, value in zip(columns, row, strict=True) if value is not None}
        steps.append((first + place, START + timedelta(seconds=place * seconds), values))
    return tuple(steps)


def _column(item: Item) -> list[float | None]:
    values: list[float | None] = []
    for part in item.text().split():
        match = _PART.fullmatch(part)
        if match is None:
            raise item.fail(f"expected values such as 0.2x10, 1+0.5x4, NaN, Inf, _, got {part!r}")
        start, growth, count = match[1], float(match[2] or 0), int(match[3] or 1)
        if start == "_":
            values += [None] * count
        elif start in _WORDS:
            values += [_WORDS[start]] * count
        else:
            values += [float(start) + growth * i for i in range(count)]
        if len(values) > MOST_STEPS:
            raise item.fail(f"expected at most {MOST_STEPS} steps")
    return values


def _expected(item: Item) -> Expected:
    keys = ("alert", "severity", "fires", "resolves")
    entries = item.mapping(keys, required=("alert", "severity", "fires"))
    severity = entries["severity"].choice(Severity, [s.value for s in Severity])
    resolves = entries["resolves"].whole(0, 10**9) if "resolves" in entries else None
    return entries["alert"].text(), severity.value, entries["fires"].whole(0, 10**9), resolves


def _seen(episode: Episode) -> Expected:
    return episode.alert, episode.severity.value, episode.fired, episode.resolved


def _say(expected: Expected) -> str:
    alert, severity, fires, resolves = expected
    end = "open at the end" if resolves is None else f"resolved at {resolves}"
    return f"{alert} ({severity}) fired at {fires}, {end}"
