"""An incident's post-mortem as Markdown. Pure. Nothing that a run or a person said acts in it as markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from rlvitals.contract.incident import IncidentStory
from rlvitals_monitor.incidents import words
from rlvitals_monitor.notify.markup import inert
from rlvitals_monitor.notify.plain_text import number, plain, spelt
from rlvitals_monitor.notify.trend import Trend, marks, sparkline

LONGEST = 800
LONGEST_TEXT = 2_000


def write_markdown(story: IncidentStory, trends: Sequence[Trend], now: datetime) -> str:
    one = story.incident
    parts = [
        f"# Post-mortem: {_said(one.headline)}",
        _table(("", ""), words.facts(story)),
        "## Order of onset",
        _table(
            ("From step", "Rule", "Severity", "Evidence", "Until", "Seen by"),
            [(o.step, o.rule, o.severity, o.evidence, o.until, o.seen_by) for o in words.onsets(story)],
        ),
        "## Evidence",
        _list(one.evidence) or "None was kept.",
        *map(_trend, trends),
        "## What to do",
        _list(words.advice(story)) or "No cause that is known explains it.",
        "## What was done",
        _list(words.deeds(story)) or "No command was given.",
        "## Changes of its alerts",
        _list(words.timeline(story)) or "None was kept.",
        "## Completions of the time when it began",
        *(_text(story, place) for place in range(len(story.texts))),
        "" if story.texts else "None was kept.",
        f"Written by RL Vitals on {words.moment(now)}.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _said(text: str) -> str:
    return inert(plain(text, LONGEST))


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {_said(line)}" for line in lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([_said(cell) or " " for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _trend(trend: Trend) -> str:
    limit = "" if trend.threshold is None else f", threshold {number(trend.threshold)}"
    legend = ", ".join(f"{sign} {name}" for sign, name in marks(trend))
    head = f"{_said(trend.metric)}, steps {trend.steps[0]:,} to {trend.steps[-1]:,}{limit}"
    return f"{head}{f' ({legend})' if legend else ''}:\n\n{_fenced(sparkline(trend, 60))}"


def _text(story: IncidentStory, place: int) -> str:
    text = story.texts[place]
    head = f"**{words.about_text(text, named=text.number in story.named)}**"
    prompt = f"Prompt:\n\n{_fenced(spelt(text.prompt, LONGEST))}\n\n" if text.prompt else ""
    return f"{head}\n\n{prompt}Completion:\n\n{_fenced(spelt(text.completion, LONGEST_TEXT) or '(empty)')}"


def _fenced(line: str) -> str:
    """One line within a fence that is longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{line}\n{fence}"
