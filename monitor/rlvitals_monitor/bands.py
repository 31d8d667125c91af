"""Bands learned from a project's own healthy runs, as an ordinary rule file that people read and may change. Pure.

A metric's band is its median over all steps of the chosen runs, and so many times its robust spread on the side
that is worse. Each run is held against the band of the others: a metric that leaves it on a healthy run is left
out, so that runs of another recipe give few bands and no false alarms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rlvitals.contract.metrics import BY_NAME, Worse
from rlvitals_monitor.rules.window import mad, median

WIDTH = 10.0
"""In robust standard deviations: of simulated runs of one recipe no healthy one left such a band, all sick did."""
LEAST_POINTS = 50
OF = (3, 5)
SKIPPED = ("progress.", "policy.learning_rate", "policy.loss", "kl.coef", "memory.", "component.")

Run = Sequence[Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Infinite on a side that is not worse."""

    low: float = -math.inf
    high: float = math.inf

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """``left_out``: metric → the healthy run that left its band."""

    bands: Mapping[str, Band]
    left_out: Mapping[str, str]


def learn_bands(runs: Mapping[str, Run], width: float = WIDTH) -> Learned:
    """Needs two runs or more, so that each can be held against the others. Raises ValueError else."""
    if len(runs) < 2:
        raise ValueError(f"two healthy runs or more were expected, got {len(runs)}")
    left_out: dict[str, str] = {}
    for name, run in runs.items():
        others = _bands([other for key, other in runs.items() if key != name], width)
        left_out |= dict.fromkeys((metric for metric, band in others.items() if _leaves(run, metric, band)), name)
    kept = {m: band for m, band in _bands(runs.values(), width).items() if m not in left_out}
    return Learned(bands=kept, left_out=left_out)


def write_rules(learned: Learned, runs: Sequence[str]) -> str:
    """A rule file, ready for ``RLVITALS_RULES``."""
    lines = [
        f"# Learned from the healthy runs {', '.join(map(_plain, runs))}. One rule a metric: change or delete any."
    ]
    lines += [
        f"# left out, since {_plain(run)} left its band: {metric}" for metric, run in learned.left_out.items()
    ]
    if not learned.bands and not learned.left_out:
        lines.append(
            f"# Nothing was learned: no metric that can be worse has {LEAST_POINTS} values and some spread."
        )
    lines += ["groups:", "  - name: learned", "    rules:"] if learned.bands else ["groups: []"]
    for metric, band in sorted(learned.bands.items()):
        lines += _rule(metric, band)
    return "\n".join(lines) + "\n"


def _rule(metric: str, band: Band) -> list[str]:
    sides = [
        f"{metric} {sign} {limit:.6g}"
        for sign, limit in (("<", band.low), (">", band.high))
        if math.isfinite(limit)
    ]
    return [
        f"      - alert: band_{metric.replace('.', '_')}",
        f"        expr: {' or '.join(sides)}",
        f"        of: [{OF[0]}, {OF[1]}]",
        "        keep_firing_for: 5 steps",
        "        labels: {severity: warning}",
        "        runbook: docs/runbooks/learned_band.md",
        "        annotations:",
        f'          summary: "{metric} is {{value}}, outside of what healthy runs of this project had."',
        '          reason: "Learned: median and spread of past healthy runs, 3 of 5 steps."',
    ]


def _bands(runs: Iterable[Run], width: float) -> dict[str, Band]:
    points: dict[str, list[float]] = {}
    for run in runs:
        for values in run:
            for metric, value in values.items():
                if metric in BY_NAME and not metric.startswith(SKIPPED) and math.isfinite(value):
                    points.setdefault(metric, []).append(value)
    found = {
        metric: _band(metric, series, width) for metric, series in points.items() if len(series) >= LEAST_POINTS
    }
    return {metric: band for metric, band in found.items() if band is not None}


def _band(metric: str, series: Sequence[float], width: float) -> Band | None:
    """None for a metric without spread or without a worse side."""
    middle, reach = median(series), width * 1.4826 * mad(series)
    worse = BY_NAME[metric].worse
    if reach <= 0 or worse is Worse.NEITHER:
        return None
    return Band(
        low=-math.inf if worse is Worse.UP else middle - reach,
        high=math.inf if worse is Worse.DOWN else middle + reach,
    )


def _leaves(run: Run, metric: str, band: Band) -> bool:
    recent: list[bool] = []
    for values in run:
        value = values.get(metric)
        if value is not None and math.isfinite(value):
            recent = [*recent[1 - OF[1] :], not band.holds(value)]
            if sum(recent) >= OF[0]:
                return True
    return False


def _plain(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name)[:100]
