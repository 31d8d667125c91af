"""Rules tried on chosen past runs: how often each was right, and what two sets of rules say differently. Pure.

Whoever chooses the runs says which of them went bad, and from which step if that is known. A warning or worse is
right on a run that went bad, at that step or later, and false anywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rlvitals.contract.alert import Severity
from rlvitals_monitor.alerts.replay import Episode

HEALTHY_STEPS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run and what rules said of it. ``since`` is its first bad step, None where that is not known."""

    run: str
    steps: int
    episodes: tuple[Episode, ...]
    bad: bool = False
    since: int | None = None
    first: int = 0

    @property
    def loud(self) -> tuple[Episode, ...]:
        """What would have been announced."""
        return tuple(e for e in self.episodes if e.severity is not Severity.INFO)

    @property
    def healthy_steps(self) -> int:
        if not self.bad:
            return self.steps
        return 0 if self.since is None else max(0, min(self.steps, self.since - self.first))

    def is_right(self, episode: Episode) -> bool:
        return self.bad and (self.since is None or episode.fired >= self.since)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRecord:
    """How often a rule fired and was right; ``named`` are the bad runs that it spoke on in time."""

    alert: str
    severity: Severity
    fired: int
    right: int
    named: tuple[str, ...]

    @property
    def precision(self) -> float:
        return self.right / self.fired


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All rules together. ``quiet``: bad runs on which nothing right was said."""

    rules: tuple[RuleRecord, ...]
    bad_runs: int
    quiet: tuple[str, ...]
    false: int
    healthy_steps: int

    @property
    def false_per_thousand(self) -> float:
        return HEALTHY_STEPS * self.false / self.healthy_steps if self.healthy_steps else 0.0


def keep_record(trials: Sequence[Trial]) -> Record:
    """The least precise rule first, since it is the one to look at."""
    found: dict[tuple[str, Severity], list[tuple[Trial, Episode]]] = {}
    for trial in trials:
        for episode in trial.loud:
            found.setdefault((episode.alert, episode.severity), []).append((trial, episode))
    rules = [_rule(alert, severity, said) for (alert, severity), said in found.items()]
    quiet = [t.run for t in trials if t.bad and not any(t.is_right(e) for e in t.loud)]
    return Record(
        rules=tuple(sorted(rules, key=lambda rule: (rule.precision, -rule.fired, rule.alert))),
        bad_runs=sum(trial.bad for trial in trials),
        quiet=tuple(quiet),
        false=sum(not trial.is_right(e) for trial in trials for e in trial.loud),
        healthy_steps=sum(trial.healthy_steps for trial in trials),
    )


def _rule(alert: str, severity: Severity, said: Sequence[tuple[Trial, Episode]]) -> RuleRecord:
    right = [trial.run for trial, episode in said if trial.is_right(episode)]
    named = tuple(dict.fromkeys(right))
    return RuleRecord(alert=alert, severity=severity, fired=len(said), right=len(right), named=named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An alert that one set of rules has and the other has not, or has at other steps."""

    run: str
    alert: str
    severity: Severity
    ours: tuple[int, ...]
    theirs: tuple[int, ...]


def compare(ours: Sequence[Trial], theirs: Sequence[Trial]) -> tuple[Difference, ...]:
    """What differs between two sets of rules over the same runs, in order."""
    found: list[Difference] = []
    for one, other in zip(ours, theirs, strict=True):
        said, said_there = _steps(one.episodes), _steps(other.episodes)
        for alert, severity in sorted({*said, *said_there}, key=lambda key: (key[0], -key[1].rank)):
            steps, steps_there = said.get((alert, severity), ()), said_there.get((alert, severity), ())
            if steps != steps_there:
                differs = Difference(run=one.run, alert=alert, severity=severity, ours=steps, theirs=steps_there)
                found.append(differs)
    return tuple(found)


def _steps(episodes: Iterable[Episode]) -> dict[tuple[str, Severity], tuple[int, ...]]:
    found: dict[tuple[str, Severity], tuple[int, ...]] = {}
    for episode in episodes:
        key = episode.alert, episode.severity
        found[key] = (*found.get(key, ()), episode.fired)
    return found
