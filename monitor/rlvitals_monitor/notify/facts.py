"""What is told of one change of an alert: where, since when, how far off, how long. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from rlvitals.contract.alert import Alert, AlertState, Transition
from rlvitals.contract.command import CommandKind
from rlvitals_monitor.notify.language import Phrase
from rlvitals_monitor.notify.notification import Item
from rlvitals_monitor.notify.plain_text import NAME_LIMIT, number, plain, run_name

ITEMS_SHOWN = 12


def is_firing(transition: Transition) -> bool:
    return transition.after is AlertState.FIRING


def facts_of(item: Item, say: Phrase) -> list[tuple[str, str]]:
    """(label, text) of a change, in the order in which they are asked."""
    transition, alert = item.transition, item.transition.alert
    facts = [
        (say("Run"), run_name(item.run)),
        (say("Project"), item.run.project),
        (say("Since step"), f"{alert.since_step}"),
    ]
    if transition.after is AlertState.RESOLVED:
        facts.append((say("Resolved at step"), f"{transition.step}"))
        facts.append((say("Lasted"), _duration(transition, say)))
    label = say("Value of {metric}", metric=alert.of) if alert.metric else say("Value")
    return [*facts, (label, measured(alert, say)), *_proposed(alert, say)]


def lines_of(items: Sequence[Item], say: Phrase, beyond: int = 0) -> str:
    """Further changes of a message, each in a few words; what is too many is counted."""
    shown = [_line(item.transition, say) for item in items[:ITEMS_SHOWN]]
    left = len(items) - len(shown) + beyond
    return "; ".join([*shown, *([say("{more} more", more=left)] if left else [])])


def lasted(span: timedelta, say: Phrase) -> str:
    """In the two largest units; empty for a span that clocks made negative."""
    seconds = int(span.total_seconds())
    if seconds < 0:
        return ""
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return say("{days} d {hours} h", days=days, hours=hours)
    if hours:
        return say("{hours} h {minutes} min", hours=hours, minutes=minutes)
    return say("{minutes} min", minutes=minutes) if minutes else say("{seconds} s", seconds=seconds)


def _line(transition: Transition, say: Phrase) -> str:
    alert, rule = transition.alert, plain(transition.alert.rule, NAME_LIMIT)
    if transition.after is AlertState.RESOLVED:
        return say("{rule} resolved at step {step}", rule=rule, step=transition.step)
    state = say(alert.severity.value.upper()) if is_firing(transition) else say(transition.after.value.upper())
    return say(
        "{rule} ({state}) since step {step}: {value}",
        rule=rule,
        state=state,
        step=alert.since_step,
        value=measured(alert, say),
    )


def _duration(transition: Transition, say: Phrase) -> str:
    steps = say("{steps} steps", steps=max(transition.step - transition.alert.since_step, 0))
    return ", ".join(part for part in (lasted(transition.at - transition.alert.since_time, say), steps) if part)


def measured(alert: Alert, say: Phrase) -> str:
    """The value, and how it is compared with what."""
    value = say("missing") if alert.value is None else number(alert.value)
    if alert.threshold is None:
        return value
    return say("{value} ({limit})", value=value, limit=say(alert.limit, limit=number(alert.threshold)))


def _proposed(alert: Alert, say: Phrase) -> list[tuple[str, str]]:
    if alert.proposal is None:
        return []
    proposed = alert.proposal
    return [(say("Proposed"), in_short(proposed.kind, proposed.knob, proposed.argument))]


def in_short(kind: CommandKind, knob: str, argument: float | None) -> str:
    """A command as people type it."""
    parts = (kind.value, knob, "" if argument is None else number(argument))
    return " ".join(part for part in parts if part)
