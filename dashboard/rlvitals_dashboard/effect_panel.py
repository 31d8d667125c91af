"""What became of a run after a command: the verdict of the stated test, and each guiding signal around it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dash import dcc, html

from rlvitals.contract.steering import EffectView, SignalEffect
from rlvitals_dashboard.components import Component, aria, mark, visible
from rlvitals_dashboard.language import t
from rlvitals_dashboard.theme import TURNS, VERDICTS, Look
from rlvitals_dashboard.words import NAN, NEG_INF, POS_INF, number, steps

LINE, MEAN, BOUNDARY = "#4a8fe0", "#8a63d2", "#8a94a3"
"""Seen on light and on dark alike (3:1 and more), since this picture does not know the theme."""
_UNDECIDED = ("told", "not judged")
"""Turns of which the reason says more than the numbers."""
_UNKNOWN = Look(tone="idle", mark="?", word="Not judged")


def effect_panel(effect: EffectView) -> Component:
    look = VERDICTS.get(effect.verdict, _UNKNOWN)
    looked = (
        ""
        if effect.first is None or effect.last is None
        else t("Steps {first} to {last}. ", first=effect.first, last=effect.last)
    )
    head = html.P([mark(look), html.Span([f" {looked}", *visible(effect.reason, 500)])])
    return [head, html.Div([_signal(signal, effect.step) for signal in effect.signals], className="signals")]


def _signal(signal: SignalEffect, step: int | None) -> Component:
    look = TURNS.get(signal.turn, _UNKNOWN)
    before = number(signal.before)
    after = number(signal.after)
    label = t(
        "{metric} around the command: on the mean {before} before, {after} after",
        metric=signal.metric,
        before=before,
        after=after,
    )
    picture = html.Div(
        dcc.Graph(figure=picture_of(signal, step), config={"staticPlot": True, "responsive": True}),
        role="img",
        className="around",
        **aria(label=label),
    )
    return html.Article(
        [
            html.Header([html.Code(visible(signal.metric, 96)), mark(look)]),
            html.P([html.B(before), " → ", html.B(after), html.Span(t(" on the mean"), className="muted")]),
            picture if any(map(math.isfinite, signal.value)) else None,
            html.P(odd_values(signal), className="muted"),
            html.P(visible(signal.reason, 300), className="muted") if signal.turn in _UNDECIDED else None,
        ],
        className="signal",
    )


def odd_values(signal: SignalEffect) -> str:
    """The steps at which it was no number, by kind; what is missing has no step to name."""
    kinds: dict[str, Callable[[float], bool]] = {
        NAN: math.isnan,
        POS_INF: lambda v: v == math.inf,
        NEG_INF: lambda v: v == -math.inf,
    }
    found = {
        name: tuple(at for at, value in zip(signal.step, signal.value, strict=True) if is_kind(value))
        for name, is_kind in kinds.items()
    }
    told = [t("{value} at {steps}", value=name, steps=steps(at)) for name, at in found.items() if at]
    return "; ".join([*told, *([t("too much of it is missing")] if signal.missing else [])])


def picture_of(signal: SignalEffect, step: int | None) -> dict[str, Any]:
    """A Plotly figure without a word in it: values, the means on either side, the boundary between them."""
    points = [(x, y if math.isfinite(y) else None) for x, y in zip(signal.step, signal.value, strict=True)]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    traces: list[dict[str, Any]] = [
        {"type": "scatter", "mode": "lines+markers", "x": xs, "y": ys, "line": {"color": LINE, "width": 1.6}}
        | {"marker": {"color": LINE, "size": 3}, "connectgaps": False}
    ]
    shapes: list[dict[str, Any]] = []
    if step is not None and xs:
        shapes.append(
            {"type": "line", "x0": step, "x1": step, "y0": 0, "y1": 1, "yref": "paper"}
            | {"line": {"color": BOUNDARY, "width": 1.5, "dash": "dot"}}
        )
        sides = ((signal.before, min(xs), step), (signal.after, step, max(xs)))
        traces += [_mean(mean, first, last) for mean, first, last in sides if mean is not None and first < last]
    bare = {"visible": False, "fixedrange": True}
    return {
        "data": traces,
        "layout": {
            "height": 110,
            "margin": {"l": 4, "r": 4, "t": 6, "b": 6},
            "showlegend": False,
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "xaxis": bare,
            "yaxis": bare,
            "shapes": shapes,
        },
    }


def _mean(mean: float, first: int, last: int) -> dict[str, Any]:
    line = {"color": MEAN, "width": 3}
    return {"type": "scatter", "mode": "lines", "x": [first, last], "y": [mean, mean], "line": line}
