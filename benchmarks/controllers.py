"""What each KL policy makes of a run: healthy, and with each fault that a coefficient may or may not cure.

The policies steer as they would for real: bounds of a factor 2 around the user's value, one change in 50 steps,
and the shipped rules say which alerts are open. Means of the last 40 of 660 steps, ± the spread of five seeds.

A small table of logits is no language model: the signs count, the decimals do not. Where the user's value is wrong
by more than the factor, no bounded policy can cure it.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from benchmarks.steered_run import Ended, Regime, train
from rlvitals_monitor.control.dry_run import OpenAlerts, observation
from rlvitals_monitor.control.kl_decision import KlSettings, KlWhy
from rlvitals_monitor.control.kl_memory import KlMemory
from rlvitals_monitor.control.kl_policies import POLICIES
from rlvitals_monitor.control.kl_steering import decide
from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.rules.rule import Rule

SEEDS = int(os.environ.get("BENCH_CONTROLLERS_SEEDS", "5"))
BEGAN = datetime(2000, 1, 1, tzinfo=timezone.utc)
FIXED = "fixed"
REGIMES = (
    Regime(name="healthy", coefficient=0.01, target=0.5),
    Regime(name="drift", coefficient=0.05, target=0.5, thought=0.15),
    Regime(name="pinned", coefficient=3.0, before=3.0, target=0.5),
    Regime(name="overshoot", coefficient=3.0, before=3.0, target=0.05, sgd=3.0),
    Regime(name="overshoot_late", coefficient=3.0, target=0.05, sgd=3.0),
    Regime(name="unmasked", coefficient=0.001, before=0.001, target=0.5, masked=False),
)
"""drift: a leak pays for thoughts. pinned, overshoot: the coefficient is too large, under Adam and under plain
steps; late: put on a trained policy. unmasked: the loss trains on what the environment writes."""


@dataclass(slots=True, kw_only=True)
class Steering:
    """A policy at work on one run, and how often it raised, lowered, reverted or held for an alert."""

    name: str
    settings: KlSettings
    alerts: OpenAlerts
    memory: KlMemory = field(default_factory=KlMemory)
    counts: dict[KlWhy, int] = field(default_factory=dict)

    def __call__(self, step: int, metrics: Mapping[str, float]) -> float | None:
        if self.name == FIXED:
            return None
        opened = self.alerts.at((step, BEGAN + step * timedelta(seconds=60), metrics))
        seen = observation(step, metrics, metrics["kl.coef"], opened)
        decision, self.memory = decide(POLICIES[self.name], self.settings, self.memory, seen)
        self.counts[decision.why] = self.counts.get(decision.why, 0) + 1
        return decision.value


NOT_BELOW, BEATS = ("healthy",), ("drift", "overshoot", "overshoot_late")
"""Where the recommended policy must not be below none by more than the seeds' spread; where it must beat it."""


def main() -> None:
    """Prints the table, what the recommended policy must show, and the table of docs/control.md.

    Raises AssertionError where it does not show it.
    """
    heads = ("success", "coefficient", "KL / target", "KL pull")
    print(f"{'regime':15}{'policy':17}" + "".join(f"{head:>16}" for head in heads) + "  up/down/revert  died")
    names = (FIXED, *POLICIES)
    jobs = [(regime, name, seed) for regime in REGIMES for name in names for seed in range(SEEDS)]
    with multiprocessing.get_context("spawn").Pool(min(os.cpu_count() or 1, 8)) as pool:
        results = pool.imap(_run, jobs)
        shown: list[str] = []
        failed: list[str] = []
        for regime in REGIMES:
            found = {name: [next(results) for _ in range(SEEDS)] for name in names}
            for name in names:
                print(_row(regime, name, found[name]))
            print(_verdict(regime.name, found[FIXED], found["guarded"]), flush=True)
            shown.append(_line(regime, [found[name] for name in names]))
            failed += _must_show(regime.name, found[FIXED], found["guarded"])
    print("\n".join(("success (coefficient), for docs/control.md:", *shown)))
    if failed:
        raise AssertionError("; ".join(failed))


_RULES: list[Rule] = []


def _run(job: tuple[Regime, str, int]) -> tuple[Ended, Mapping[KlWhy, int]]:
    regime, name, seed = job
    _RULES[:] = _RULES or load_rules()
    settings = KlSettings(users=regime.coefficient, target=regime.target)
    steering = Steering(name=name, settings=settings, alerts=OpenAlerts(_RULES, {"kl_target": regime.target}))
    return train(regime, seed, steering), steering.counts


def _row(regime: Regime, name: str, runs: Sequence[tuple[Ended, Mapping[KlWhy, int]]]) -> str:
    ends = [end for end, _ in runs]
    cells = (
        _spread([end.success for end in ends], 2),
        _spread([end.coefficient for end in ends], 4),
        _spread([end.kl / regime.target for end in ends], 2),
        _spread([end.pull for end in ends], 2),
    )
    turns = "/".join(
        f"{sum(counts.get(why, 0) for _, counts in runs)}" for why in (KlWhy.RAISE, KlWhy.LOWER, KlWhy.REVERT)
    )
    died = sum(end.died for end in ends)
    return f"{regime.name:15}{name:17}" + "".join(f"{cell:>16}" for cell in cells) + f"{turns:>16}{died:>6}"


def _line(regime: Regime, found: Sequence[Sequence[tuple[Ended, Mapping[KlWhy, int]]]]) -> str:
    cells = []
    for runs in found:
        success, coefficient = ([getattr(end, name) for end, _ in runs] for name in ("success", "coefficient"))
        cells.append(f"{_spread(success, 2)} ({statistics.fmean(coefficient):.2g})")
    return f"| {regime.name} | " + " | ".join(cells) + " |"


def _must_show(
    regime: str,
    fixed: Sequence[tuple[Ended, Mapping[KlWhy, int]]],
    guarded: Sequence[tuple[Ended, Mapping[KlWhy, int]]],
) -> list[str]:
    gains = [after.success - before.success for (before, _), (after, _) in zip(fixed, guarded, strict=True)]
    spread = _deviation([end.success for end, _ in fixed])
    if regime in NOT_BELOW and statistics.fmean(gains) < -spread:
        return [f"guarded is below fixed on {regime}"]
    if regime in BEATS and not (statistics.fmean(gains) > spread and min(gains) > 0.0):
        return [f"guarded does not beat fixed on {regime}"]
    if regime in (*NOT_BELOW, *BEATS):
        print(
            f"  must show on {regime}: {'not below' if regime in NOT_BELOW else 'beats'} fixed: yes\n", flush=True
        )
    return []


def _verdict(
    regime: str,
    fixed: Sequence[tuple[Ended, Mapping[KlWhy, int]]],
    guarded: Sequence[tuple[Ended, Mapping[KlWhy, int]]],
) -> str:
    """Seed by seed, since both begin with the same run."""
    gains = [after.success - before.success for (before, _), (after, _) in zip(fixed, guarded, strict=True)]
    spread = _deviation([end.success for end, _ in fixed])
    mean, worst = statistics.fmean(gains), min(gains)
    better = sum(gain > 0.0 for gain in gains)
    said = "BELOW fixed by more than the seeds' spread" if mean < -spread else "not below fixed"
    return (
        f"  guarded on {regime}: {said}; {mean:+.2f} on average, better on {better} of {len(gains)} seeds, "
        f"worst {worst:+.2f}, spread of fixed {spread:.2f}\n"
    )


def _spread(values: Sequence[float], digits: int) -> str:
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return "not measured"
    return f"{statistics.fmean(known):.{digits}f} ± {_deviation(known):.{digits}f}"


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0
