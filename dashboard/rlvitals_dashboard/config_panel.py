"""A run's configuration as it was told, folded: dotted names, values as they are, what was removed as such."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dash import html

from rlvitals_dashboard.components import LONGEST_NAME, Component, folded, panel, visible
from rlvitals_dashboard.language import t
from rlvitals_dashboard.words import number, plural

ROWS_MAX = 600
LONGEST_VALUE = 300


def config_panel(config: Mapping[str, Any]) -> Component:
    """Nothing where a run told nothing of its settings."""
    rows = list(flat(config))
    if not rows:
        return None
    shown = [
        html.Li([html.Code(visible(name, 2 * LONGEST_NAME)), html.Span(value)]) for name, value in rows[:ROWS_MAX]
    ]
    rest = len(rows) - ROWS_MAX
    more = (
        html.P(t("{settings} not shown", settings=plural(rest, "more setting")), className="muted")
        if rest > 0
        else None
    )
    body = [html.Ul(shown, className="reasons settings"), more]
    return panel(t("Configuration"), folded(plural(len(rows), "setting"), body))


def flat(config: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Component]]:
    """Settings by their dotted names, in the order in which they were told; an empty group is none."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", _value(value)


def _value(value: Any) -> Component:
    if value is None:
        return t("not set")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, (list, tuple)):
        return visible(", ".join(map(_word, value)), LONGEST_VALUE)
    return visible(str(value), LONGEST_VALUE)


def _word(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)
