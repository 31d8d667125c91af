"""What people are told about a change of an alert: what, where, since which step, how far off, what to do. Pure.

Names and texts come from training processes and are not trusted: `plain` takes out what could pose as something
else. A channel's own escaping comes on top.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from rlvitals.contract.alert import Alert, AlertState, Transition
from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify.language import Phrase, phrase_of
from rlvitals_monitor.notify.notification import Notification

ELLIPSIS = "…"
TITLE_LIMIT = 140
NAME_LIMIT = 80
TEXT_LIMIT = 600
STEPS_AROUND = 100
_BREAK = "\u200b"
# What turns around or hides the text after it.
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """In reading order. ``link`` is ours and safe; everything else was made plain but not escaped.

    ``advice_label`` is what stands before the advice, in the message's language.
    """

    title: str
    summary: str
    facts: tuple[tuple[str, str], ...]
    advice: str
    link: str
    link_text: str
    advice_label: str = "What to do"


def compose(notification: Notification) -> Message:
    transition, alert = notification.lead.transition, notification.lead.transition.alert
    say = phrase_of(notification.language)
    title = say(
        "{state}: {rule} on {run}",
        state=say(_headline(transition)),
        rule=alert.rule,
        run=run_name(notification.lead.run),
    )
    return Message(
        title=plain(title, TITLE_LIMIT),
        summary=plain(alert.summary or transition.reason, TEXT_LIMIT),
        facts=tuple(
            (plain(label, NAME_LIMIT), plain(text, NAME_LIMIT)) for label, text in _facts(notification, say)
        ),
        advice=plain(alert.advice, TEXT_LIMIT) if transition.after is AlertState.FIRING else "",
        link=notification.link,
        link_text=say("Open the run at step {step}", step=transition.step),
        advice_label=say("What to do"),
    )


def as_text(message: Message) -> str:
    """The whole message in plain lines."""
    lines = [message.title, message.summary, *(f"{label}: {text}" for label, text in message.facts)]
    lines += [f"{message.advice_label}: {message.advice}" if message.advice else "", message.link]
    return "\n".join(line for line in lines if line)


def link_to(public_url: str, alert: Alert, step: int) -> str:
    """The run's page, zoomed to the steps around ``step``; empty when our own address is not known."""
    if not public_url:
        return ""
    view = urlencode({"attempt": alert.attempt, "from": max(step - STEPS_AROUND, 0), "to": step + STEPS_AROUND})
    return f"{public_url.rstrip('/')}/ui/run/{quote(alert.run, safe='')}?{view}"


def run_name(run: RunInfo) -> str:
    """Name and id, since names repeat."""
    return f"{run.name} ({run.id})" if run.name and run.name != run.id else run.id


def number(value: float | None) -> str:
    """NaN, +Inf, -Inf and a missing value are four different things to say."""
    if value is None:
        return "missing"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return f"{value:.6g}"


def plain(text: str, limit: int) -> str:
    """One run of visible text: no control or direction characters, no mention, no address that becomes a link."""
    visible = "".join(_shown(c) for c in text[: limit * 4])
    quiet = " ".join(visible.split()).replace("://", f":{_BREAK}//").replace("@", f"@{_BREAK}")
    return clip(quiet, characters=limit)


def clip(
    text: str, *, characters: int, octets: int | None = None, escape: Callable[[str], str] = lambda c: c
) -> str:
    """The longest escaped start of ``text`` within both limits, cut between characters, never inside an escape."""
    room = characters, octets if octets is not None else characters * 12
    whole = [escape(c) for c in text]
    if _fits("".join(whole), room):
        return "".join(whole)
    kept, used = [], _size(ELLIPSIS)
    for piece in whole:
        used = (used[0] + len(piece), used[1] + len(piece.encode()))
        if used[0] > room[0] or used[1] > room[1]:
            break
        kept.append(piece)
    return "".join(kept) + ELLIPSIS


def _fits(text: str, room: tuple[int, int]) -> bool:
    size = _size(text)
    return size[0] <= room[0] and size[1] <= room[1]


def _size(text: str) -> tuple[int, int]:
    return len(text), len(text.encode())


def _shown(character: str) -> str:
    if character in _BIDI or character == _BREAK:
        return ""
    category = unicodedata.category(character)
    if category == "Cs":
        return "\ufffd"
    return " " if category in ("Cc", "Zl", "Zp") else character


def _headline(transition: Transition) -> str:
    if transition.after is AlertState.FIRING:
        return str(transition.alert.severity.value).upper()
    return str(transition.after.value).upper()


def _facts(notification: Notification, say: Phrase) -> list[tuple[str, str]]:
    transition, alert = notification.lead.transition, notification.lead.transition.alert
    facts = [
        (say("Run"), run_name(notification.lead.run)),
        (say("Project"), notification.lead.run.project),
        (say("Since step"), f"{alert.since_step}"),
    ]
    if transition.after is AlertState.RESOLVED:
        facts.append((say("Resolved at step"), f"{transition.step}"))
    label = say("Value of {metric}", metric=alert.metric) if alert.metric else say("Value")
    return [*facts, (label, _measured(alert, say)), *_proposed(alert, say)]


def _measured(alert: Alert, say: Phrase) -> str:
    value = say("missing") if alert.value is None else number(alert.value)
    return (
        value
        if alert.threshold is None
        else say("{value} (threshold {limit})", value=value, limit=number(alert.threshold))
    )


def _proposed(alert: Alert, say: Phrase) -> list[tuple[str, str]]:
    if alert.proposal is None:
        return []
    argument = "" if alert.proposal.argument is None else f" {number(alert.proposal.argument)}"
    return [(say("Proposed"), f"{alert.proposal.kind.value}{argument}")]
