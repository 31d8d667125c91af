"""A silence: which alerts nobody is to be told of, from when to when, who asked for it and why. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain

from rlvitals.contract.alert import Alert
from rlvitals.contract.report import RunInfo
from rlvitals.contract.view import SilencePurpose, SilenceState
from rlvitals_monitor.matcher import Matcher
from rlvitals_monitor.silences.hours import Hours

MATCHERS_MAX = 20
MATCHER_CHARS_MAX = 300
LASTS_MAX = timedelta(days=366)
AHEAD_MAX = timedelta(days=366)
EXPECTED_MATCHERS = f"expected 1 to {MATCHERS_MAX} matchers of at most {MATCHER_CHARS_MAX} characters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Alerts of which all ``matchers`` hold are told to nobody from ``starts_at`` until ``ends_at``.

    With ``hours``, only within them; ``starts_at`` and ``ends_at`` then bound the whole.
    """

    id: str
    matchers: tuple[Matcher, ...]
    starts_at: datetime
    ends_at: datetime
    created_at: datetime
    purpose: SilencePurpose = SilencePurpose.SILENCE
    who: str = ""
    why: str = ""
    ended_by: str = ""
    hours: Hours | None = None

    def matches(self, alert: Alert, run: RunInfo) -> bool:
        """Whether it is about this alert; not whether it is in force, see `at`."""
        return all(matcher.matches(alert, run) for matcher in self.matchers)

    def at(self, now: datetime) -> Silence | None:
        """What is in force at ``now``, from its own begin to its own end; None where nothing is."""
        if not self.starts_at <= now < self.ends_at:
            return None
        if self.hours is None:
            return self
        span = self.hours.at(now)
        if span is None:
            return None
        return replace(self, starts_at=max(span[0], self.starts_at), ends_at=min(span[1], self.ends_at))

    def state(self, now: datetime) -> SilenceState:
        if now >= self.ends_at:
            return SilenceState.ENDED
        if now < self.starts_at:
            return SilenceState.PENDING
        return SilenceState.RESTING if self.at(now) is None else SilenceState.ACTIVE


def read_matchers(texts: Iterable[str]) -> tuple[Matcher, ...]:
    """Raises ValueError that says what was expected. None at all would match everything, which must be said."""
    given = tuple(texts)
    if not 1 <= len(given) <= MATCHERS_MAX or any(len(text) > MATCHER_CHARS_MAX for text in given):
        raise ValueError(EXPECTED_MATCHERS)
    return tuple(Matcher.read(text) for text in given)


def about(alert: Alert) -> tuple[Matcher, ...]:
    """Of this alert's rule on this alert's run, and of nothing else."""
    return (Matcher.exactly("run", alert.run), Matcher.exactly("rule", alert.rule))


class InForce:
    """Those that are in force (see `store.silences.active`), so that among thousands one is found soon.

    Most are of one run, by a click on its alert: they are kept by what they call it.
    """

    def __init__(self, silences: Iterable[Silence]) -> None:
        self._of_run: dict[str, list[Silence]] = {}
        self._others: list[Silence] = []
        for silence in silences:
            named = (m.literal for m in silence.matchers if m.field == "run")
            run = next((name for name in named if name is not None), None)
            (self._others if run is None else self._of_run.setdefault(run, [])).append(silence)

    def about(self, alert: Alert, run: RunInfo) -> Silence | None:
        """The one about this alert that ends last."""
        of_run = (self._of_run.get(name, []) for name in {run.id, run.name})
        found = [silence for silence in chain(*of_run, self._others) if silence.matches(alert, run)]
        return max(found, key=lambda silence: silence.ends_at, default=None)
