"""What stands on a chart beside its line: alerts, thresholds, actions, and values that are no number. Pure.

Severities and attempts differ by dash and shape, never by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvitals.contract.alert import Alert, AlertState, Severity
from rlvitals.contract.comparison import ComparedCurve
from rlvitals.contract.view import CommandView, RuleView, SeriesView
from rlvitals_dashboard.figure_scale import Scale, finite_values
from rlvitals_dashboard.theme import Theme
from rlvitals_dashboard.words import NAN, NEG_INF, POS_INF, markup, number

Trace = dict[str, Any]

MOST_BANDS = 24
MOST_LIMITS = 3
REACH = 2.0
"""A quiet rule's limit is drawn up to so many heights of the curve above and below it."""
_DASHES = {Severity.CRITICAL: "solid", Severity.WARNING: "dash", Severity.INFO: "dot"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A number that a rule holds a metric against; ``firing`` where it does not hold any more."""

    rule: str
    severity: Severity
    at: float
    firing: bool = False


def limits_of(metric: str, rules: Iterable[RuleView], alerts: Iterable[Alert]) -> tuple[Limit, ...]:
    """Of all rules that watch the metric, and of the alerts that fire on it; the gravest first.

    A rule that names no metric holds a difference or a slope against its threshold: that has no place on the axis.
    """
    rules = tuple(rules)
    apart = {(r.rule, r.severity) for r in rules if not r.metric and r.threshold is not None}
    on = [a for a in alerts if a.metric == metric and a.state is AlertState.FIRING]
    firing = [a for a in on if (a.rule, a.severity) not in apart]
    known = {(a.rule, a.severity) for a in firing}
    watching = [r for r in rules if r.metric == metric and not r.dormant and (r.rule, r.severity) not in known]
    told: list[Alert | RuleView] = [*firing, *watching]
    found = [
        Limit(rule=one.rule, severity=one.severity, at=one.threshold, firing=isinstance(one, Alert))
        for one in told
        if one.threshold is not None and math.isfinite(one.threshold)
    ]
    distinct = {limit.at: limit for limit in sorted(found, key=lambda one: (one.firing, one.severity.rank))}
    return tuple(sorted(distinct.values(), key=lambda one: (-one.firing, -one.severity.rank, one.at)))


def within_reach(limits: Iterable[Limit], shown: Sequence[SeriesView], scale: Scale) -> list[Limit]:
    """Without those that lie so far off that the axis, which makes room for them, would press the curve flat.

    What fires is always shown.
    """
    values = finite_values(shown)
    ends = [_height(end(values), scale) for end in (min, max)] if values else []
    places = [place for place in ends if place is not None]
    if not places:
        return list(limits)
    low, high = places[0], places[-1]
    largest = max(abs(low), abs(high))
    span = max(high - low, largest / 4) if high > low else largest or 1.0
    span = max(span, 1.0) if scale.log else span

    def near(limit: Limit) -> bool:
        place = _height(limit.at, scale)
        return place is not None and low - REACH * span <= place <= high + REACH * span

    return [limit for limit in limits if limit.firing or near(limit)]


def _height(value: float, scale: Scale) -> float | None:
    """Where a value stands on the axis, in decades where that is logarithmic."""
    if not scale.log:
        return scale.place(value)
    return math.log10(value) if value > 0 else None


def limit_lines(limits: Sequence[Limit], scale: Scale, theme: Theme) -> Iterator[dict[str, Any]]:
    """Those that have a place on the axis."""
    for limit in limits[:MOST_LIMITS]:
        place = scale.place(limit.at) if scale.takes(limit.at) else None
        if place is None:
            continue
        line = {"color": theme.severity(limit.severity), "width": 1, "dash": "dot"}
        yield level(place, f"limit {limit.rule}", line) | {"opacity": 1 if limit.firing else 0.55}


def level(place: float, name: str, line: Mapping[str, Any]) -> dict[str, Any]:
    """Across the whole chart."""
    return {
        "type": "line",
        "name": name,
        "xref": "paper",
        "yref": "y",
        "x0": 0,
        "x1": 1,
        "y0": place,
        "y1": place,
        "line": line,
    }


def firing_band(alerts: Sequence[Alert], last: int, theme: Theme) -> Trace:
    """The band of the worst firing alert: a trace and no shape, so that a live update can extend it."""
    firing = [a for a in alerts if a.state is AlertState.FIRING]
    worst = max(firing, key=lambda a: (a.severity.rank, -a.since_step), default=None)
    return {
        "type": "scatter",
        "name": "firing",
        "mode": "lines",
        "x": [worst.since_step, max(last, worst.since_step)] if worst else [],
        "y": [1, 1] if worst else [],
        "yaxis": "y3",
        "fill": "tozeroy",
        "fillcolor": faint(theme.severity(worst.severity), 0.10) if worst else theme.envelope,
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def faint(colour: str, share: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share:.2f})"


def alert_bands(alerts: Sequence[Alert], theme: Theme) -> Iterator[dict[str, Any]]:
    """Where each alert's condition first held, past ones until their recovery."""
    for alert in sorted(alerts, key=lambda a: a.since_step)[-MOST_BANDS:]:
        colour = theme.severity(alert.severity)
        yield upright(alert.since_step, colour, _DASHES[alert.severity])
        if alert.resolved_step is not None:
            yield _past(alert.since_step, alert.resolved_step, colour)


def _past(first: int, last: int, colour: str) -> dict[str, Any]:
    return {
        "type": "rect",
        "xref": "x",
        "yref": "paper",
        "x0": first,
        "x1": last,
        "y0": 0,
        "y1": 1,
        "fillcolor": colour,
        "opacity": 0.06,
        "line": {"width": 0},
        "layer": "below",
    }


def upright(x: int | None, colour: str, dash: str) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "x",
        "yref": "paper",
        "x0": x,
        "x1": x,
        "y0": 0,
        "y1": 1,
        "line": {"color": colour, "width": 1.2, "dash": dash},
    }


def action_marks(marks: Sequence[CommandView], theme: Theme) -> Trace:
    return {
        "type": "scatter",
        "name": "actions",
        "mode": "markers",
        "x": [c.step for c in marks],
        "y": [0.04] * len(marks),
        "yaxis": "y3",
        "text": [_action_words(c) for c in marks],
        "marker": {"symbol": "diamond", "size": 9, "color": theme.action},
        "hovertemplate": "step %{x:,}<br>%{text}<extra></extra>",
        "cliponaxis": False,
    }


def _action_words(command: CommandView) -> str:
    change = ""
    if command.before is not None or command.after is not None:
        change = f" {number(command.before)} → {number(command.after)}"
    by = f"<br>by {markup(command.decided_by or command.who)}" if command.decided_by or command.who else ""
    return f"<b>{markup(command.kind.value)}</b>{change}{by}"


def nonfinite_kinds(shown: Sequence[SeriesView | ComparedCurve]) -> list[str]:
    """The rows of the strip: which of NaN, +Inf and −Inf there are."""
    kinds = ((POS_INF, "pos_inf"), (NAN, "nan"), (NEG_INF, "neg_inf"))
    return [word for word, name in kinds if any(getattr(series, name) for series in shown)]


def rug(at: Sequence[int], word: str, theme: Theme, note: str = "") -> Trace:
    """One kind of value that is no number, each at its step."""
    symbol, colour = _KINDS[word], {NAN: theme.nan, POS_INF: theme.pos_inf, NEG_INF: theme.neg_inf}[word]
    return {
        "type": "scatter",
        "name": f"{word}{note}",
        "mode": "markers",
        "x": list(at),
        "y": [word] * len(at),
        "yaxis": "y2",
        "marker": {"symbol": symbol, "size": 8, "color": colour, "line": {"color": colour, "width": 2}},
        "hovertemplate": f"step %{{x:,}}<br><b>{word}</b>{note}<extra></extra>",
        "cliponaxis": False,
    }


_KINDS = {NAN: "x-thin", POS_INF: "triangle-up", NEG_INF: "triangle-down"}


def strip_axis(kinds: Sequence[str], theme: Theme, *, bottom: float) -> dict[str, Any]:
    """Of the strip above the plot in which they stand, one row a kind."""
    if not kinds:
        return {"domain": [0.99, 1], "visible": False, "fixedrange": True, "range": [0, 1]}
    return {
        "type": "category",
        "domain": [bottom, 1],
        "categoryorder": "array",
        "categoryarray": list(reversed(kinds)),
        "range": [-0.5, len(kinds) - 0.5],
        "fixedrange": True,
        "showgrid": False,
        "zeroline": False,
        "color": theme.text,
        "tickfont": {"size": 10, "color": theme.text},
        "ticks": "",
        "showline": False,
    }
