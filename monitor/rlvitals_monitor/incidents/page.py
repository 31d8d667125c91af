"""An incident's post-mortem as one HTML file that needs nothing else. Pure; jinja2 escapes whatever is put in."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from rlvitals.contract.alert import Alert, AlertState
from rlvitals.contract.incident import Axis, IncidentStory, lanes
from rlvitals_monitor.incidents import words
from rlvitals_monitor.notify.picture import draw
from rlvitals_monitor.notify.plain_text import clip, plain, spelt
from rlvitals_monitor.notify.trend import Trend

LONGEST = 800
LONGEST_TEXT = 2_000
WIDTH = 640
LEAST_BAR = 4
"""Pixels of the swim-lane, and of what is over within a step."""

_HERE = files("rlvitals_monitor.incidents")
_STYLE = (_HERE / "page.css").read_text("utf-8")
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; img-src data:; base-uri 'none'; form-action 'none'"
"""Also in the file itself, since it is read from a disk."""
HEADERS = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_PAGE = Environment(autoescape=True, undefined=StrictUndefined).from_string(
    (_HERE / "page.html").read_text("utf-8")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """In pixels of the swim-lane; ``lead`` is where it held and had not fired yet."""

    x: float
    width: float
    lead: float
    goes_on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    rule: str
    severity: str
    bars: tuple[Bar, ...]
    words: str


def write_page(story: IncidentStory, trends: Sequence[Trend], now: datetime) -> str:
    one = story.incident
    return _PAGE.render(
        style=Markup(_STYLE),
        policy=POLICY,
        title=plain(one.headline, LONGEST),
        severity=one.severity.value,
        facts=[(label, plain(value, LONGEST)) for label, value in words.facts(story)],
        width=WIDTH,
        axis=story.axis,
        onset=story.axis.share(one.onset_step) * WIDTH,
        rows=list(rows(story)),
        saved=[e.step for e in story.checkpoints],
        saved_at=[story.axis.share(e.step) * WIDTH for e in story.checkpoints if e.step is not None],
        onsets=list(words.onsets(story)),
        evidence=_plain(one.evidence),
        pictures=[(trend.metric, base64.b64encode(draw(trend)).decode()) for trend in trends],
        advice=_plain(words.advice(story)),
        deeds=_plain(words.deeds(story)),
        timeline=_plain(words.timeline(story)),
        texts=[
            (
                words.about_text(text, named=text.number in story.named),
                spelt(text.prompt, LONGEST),
                spelt(text.completion, LONGEST_TEXT) or "(empty)",
            )
            for text in story.texts
        ],
        written=words.moment(now),
    )


def rows(story: IncidentStory) -> Iterator[Row]:
    for lane in lanes(story.alerts):
        last = lane.alerts[-1]
        end = "goes on" if last.state is not AlertState.RESOLVED else f"to step {last.resolved_step or 0:,}"
        yield Row(
            rule=clip(lane.rule, characters=80),
            severity=lane.severity.value,
            bars=tuple(_bar(alert, story.axis) for alert in lane.alerts),
            words=f"{lane.rule} from step {lane.onset:,} {end}",
        )


def _bar(alert: Alert, axis: Axis) -> Bar:
    fired = alert.since_step if alert.fired_step is None else alert.fired_step
    end = axis.last if alert.resolved_step is None else alert.resolved_step
    x, begin = axis.share(fired) * WIDTH, axis.share(alert.since_step) * WIDTH
    return Bar(
        x=min(x, WIDTH - LEAST_BAR),
        width=max(axis.share(end) * WIDTH - x, LEAST_BAR),
        lead=begin,
        goes_on=end >= axis.last,
    )


def _plain(lines: Sequence[str]) -> list[str]:
    return [plain(line, LONGEST) for line in lines]
