"""A message in parts that every channel can show: a title, a summary, facts, labelled sections and links. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from urllib.parse import quote, urlencode

from rlvitals.contract.alert import Alert
from rlvitals_monitor.notify.trend import Trend

STEPS_AROUND = 100


class Tone(str, Enum):
    """What colour a message has, where a channel knows colours."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A labelled part, the most important first; ``exact`` ones line up in a fixed width.

    ``pictured``: the message's picture says the same.
    """

    label: str
    text: str
    exact: bool = False
    pictured: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    text: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """In reading order. Links are ours and safe; everything else was made plain but not escaped.

    ``state`` is the title's first word; ``trend`` is there where a channel that takes pictures should draw it.
    """

    title: str
    state: str
    tone: Tone
    summary: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    links: tuple[Link, ...]
    trend: Trend | None = None

    @property
    def beside_picture(self) -> tuple[Section, ...]:
        """The sections, without what the picture says where there is one."""
        return tuple(section for section in self.sections if not (section.pictured and self.trend is not None))


def as_text(message: Message) -> str:
    """The whole message in plain lines."""
    lines = [message.title, message.summary, *(f"{label}: {text}" for label, text in message.facts)]
    lines += [f"{section.label}: {section.text}" for section in message.sections]
    lines += [f"{link.text}: {link.url}" for link in message.links]
    return "\n".join(line for line in lines if line)


def link_to(public_url: str, alert: Alert, step: int) -> str:
    """The run's page, zoomed to the steps around ``step``; empty when our own address is not known."""
    if not public_url:
        return ""
    view = urlencode({"attempt": alert.attempt, "from": max(step - STEPS_AROUND, 0), "to": step + STEPS_AROUND})
    return f"{public_url.rstrip('/')}/ui/run/{quote(alert.run, safe='')}?{view}"
