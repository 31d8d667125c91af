"""What goes to one channel at once: changes of alerts, the cause first, and what is shown beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from rlvitals.contract.alert import AlertState, Severity, Transition
from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify.language import Language
from rlvitals_monitor.notify.trend import Trend


class Purpose(str, Enum):
    """Why people hear of a change: it is news, it still holds, or nobody has answered elsewhere."""

    NEWS = "news"
    REMINDER = "reminder"
    ESCALATION = "escalation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One change of an alert. ``symptom_of`` is the rule of the item that caused it; empty for a cause.

    ``settled``: a later item of the same message tells that the alert is over, so people hear of its end only.
    """

    transition: Transition
    run: RunInfo
    link: str = ""
    purpose: Purpose = Purpose.NEWS
    symptom_of: str = ""
    settled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCount:
    """A run's part of a digest: how many changes of each sort, the strongest of them, and its commonest rules."""

    run: RunInfo
    firing: int
    resolved: int
    severity: Severity
    rules: tuple[tuple[str, int], ...] = ()
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A completion to look at, untrusted and whole. ``why`` and ``invalid_utf8`` as in `contract.report.Text`."""

    step: int
    completion: str
    why: str = ""
    reward: float | None = None
    invalid_utf8: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The incident that the first item belongs to; ``change`` is (framework's key, what to do with it)."""

    headline: str
    confidence: str
    advice: str
    change: tuple[tuple[str, str], ...] = ()
    isnt: str = ""


class Act(str, Enum):
    """What a link in a message leads to."""

    ACKNOWLEDGE = "acknowledge"
    SILENCE = "silence"
    APPROVE = "approve"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    act: Act
    url: str
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What a message shows beside its items, as far as there is any.

    ``draws`` is False where the trend goes as text only, also to a channel that takes pictures; ``template`` is
    the channel's own text.
    """

    trend: Trend | None = None
    draws: bool = True
    sample: Sample | None = None
    diagnosis: Diagnosis | None = None
    actions: tuple[Action, ...] = ()
    template: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What goes to one channel at once. ``id`` stays the same over all attempts to send it.

    ``items`` are at least one, the cause before its symptoms. A digest is about several runs: ``run`` is None and
    ``counts`` has one entry a run, which together count every change, also those that ``items`` leaves out.
    """

    id: str
    items: tuple[Item, ...]
    run: RunInfo | None
    counts: tuple[RunCount, ...] = ()
    link: str = ""
    language: Language = Language.ENGLISH
    extras: Extras = field(default_factory=Extras)

    @property
    def lead(self) -> Item:
        """The first item that is not settled: a cause, or what weighs most."""
        return next((item for item in self.items if not item.settled), self.items[0])

    @property
    def is_over(self) -> bool:
        """All that it tells of has resolved."""
        over = all(item.settled or item.transition.after is AlertState.RESOLVED for item in self.items)
        return over and not any(count.firing for count in self.counts)


def tell_one(
    transition: Transition, run: RunInfo, *, id: str, link: str = "", language: Language = Language.ENGLISH
) -> Notification:
    """A notification of one change."""
    item = Item(transition=transition, run=run, link=link)
    return Notification(id=id, items=(item,), run=run, link=link, language=language)
