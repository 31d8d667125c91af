"""A channel's own words: a Jinja template for the text below the title, in a sandbox.

template: |
  {{ summary }}
  {{ rule }} of {{ run.name }} since step {{ since_step }}: {{ value }} (limit {{ threshold }})
  {% if diagnosis %}{{ diagnosis }}{% endif %}

Title and links stay ours, and what it makes of untrusted names is made plain. One that cannot be read is refused
as it is loaded; one that fails on a message is told in that message, which then has our own words.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from jinja2 import Template, TemplateError, TemplateSyntaxError

from rlvitals_monitor.notify.facts import is_firing
from rlvitals_monitor.notify.message import Message, Section
from rlvitals_monitor.notify.notification import Notification
from rlvitals_monitor.notify.plain_text import NAME_LIMIT, TEXT_LIMIT, clip, number, plain, spelt
from rlvitals_monitor.notify.sandbox import Sandbox, turns

OUTPUT_LIMIT = 3000
SOURCE_LIMIT = 10_000
LINES = 40
_NAME = "<template>"
_FAULTS = (
    *(TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError),
    *(RecursionError, SyntaxError),
)


class TemplateFault(ValueError):
    """In words: the template's line, and what is wrong there."""


_SANDBOX = Sandbox()


def rendered(message: Message, notification: Notification, source: str) -> Message:
    """The message with the template's text in place of ours, or with a word on why it is not."""
    try:
        text = fill(source, values(message, notification))
    except TemplateFault as error:
        fault = Section(label="template", text=plain(str(error), TEXT_LIMIT))
        return replace(message, sections=(*message.sections, fault))
    return replace(message, summary=text, facts=(), sections=())


def fill(source: str, given: Mapping[str, object]) -> str:
    """Plain lines, at most `LINES` of them and `OUTPUT_LIMIT` characters. Raises `TemplateFault`."""
    template = _compiled(source)
    text = ""
    try:
        for piece in template.generate({**given, **turns()}):
            text += piece
            if len(text) > OUTPUT_LIMIT:
                break
    except _FAULTS as error:
        raise TemplateFault(f"line {_line_of(error)}: {error}") from None
    lines = (plain(line, TEXT_LIMIT) for line in text.splitlines()[: 2 * LINES])
    return clip("\n".join([line for line in lines if line][:LINES]), characters=OUTPUT_LIMIT)


def values(message: Message, notification: Notification) -> dict[str, object]:
    """What a template knows, the same names at every message; a text that has nothing to say is empty."""
    item, extras = notification.lead, notification.extras
    transition, alert = item.transition, item.transition.alert
    firing = len([one for one in notification.items if is_firing(one.transition)])
    return {
        "title": message.title,
        "state": message.state,
        "summary": message.summary,
        "facts": [{"label": label, "text": text} for label, text in message.facts],
        "sections": [{"label": section.label, "text": section.text} for section in message.sections],
        "run": {name: plain(getattr(item.run, name), NAME_LIMIT) for name in _RUN},
        "rule": plain(alert.rule, NAME_LIMIT),
        "severity": alert.severity.value,
        "metric": plain(alert.metric, NAME_LIMIT),
        "value": number(alert.value),
        "threshold": "" if alert.threshold is None else number(alert.threshold),
        "since_step": alert.since_step,
        "step": transition.step,
        "is_firing": is_firing(transition),
        "is_digest": notification.run is None,
        "firing": sum(count.firing for count in notification.counts) if notification.counts else firing,
        "changes": len(notification.items),
        "advice": plain(alert.advice, TEXT_LIMIT),
        "diagnosis": "" if extras.diagnosis is None else plain(extras.diagnosis.headline, TEXT_LIMIT),
        "sample": "" if extras.sample is None else spelt(extras.sample.completion, TEXT_LIMIT),
    }


_RUN = ("id", "name", "project", "framework", "model")


@lru_cache(maxsize=64)
def _compiled(source: str) -> Template:
    if len(source) > SOURCE_LIMIT:
        raise TemplateFault(f"line 1: expected at most {SOURCE_LIMIT} characters, got {len(source)}")
    try:
        return _SANDBOX.read(source)
    except TemplateSyntaxError as error:
        raise TemplateFault(f"line {error.lineno}: {error.message}") from None
    except _FAULTS as error:
        raise TemplateFault(f"line 1: {error}") from None


def _line_of(error: BaseException) -> int:
    """Jinja puts the template's own lines into a traceback."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == _NAME]
    return lines[-1] or 1 if lines else 1
