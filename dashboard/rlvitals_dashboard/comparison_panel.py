"""The drawn part of the page that puts runs side by side: where they part, and a chart for each metric. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dash import dcc, html

from rlvitals.contract.comparison import Axis, ComparedCurve, ComparedMetric, ComparisonView, Likeness, Parting
from rlvitals.contract.metrics import find
from rlvitals_dashboard.chart_card import GRAPH_CONFIG
from rlvitals_dashboard.comparison_blocks import swatch
from rlvitals_dashboard.comparison_figure import compared_figure, is_log, place_words
from rlvitals_dashboard.components import LONGEST_NAME, Component, aria, mark, notice, panel, visible
from rlvitals_dashboard.language import t, woven
from rlvitals_dashboard.theme import Look, Theme
from rlvitals_dashboard.words import NAN, NEG_INF, POS_INF, plural, unit

LIKENESSES = {
    Likeness.SAME: Look(tone="idle", mark="=", word="Equal"),
    Likeness.TOGETHER: Look(tone="good", mark="●", word="Together"),
    Likeness.APART: Look(tone="warning", mark="▲", word="Diverged"),
    Likeness.REJOINED: Look(tone="info", mark="◆", word="Diverged for a while"),
    Likeness.NOT_JUDGED: Look(tone="idle", mark="–", word="Not judged"),
}
"""That two runs differ is no fault of either: nothing here is red."""
_APART = (Likeness.APART, Likeness.REJOINED)


def drawn(
    view: ComparisonView, letters: Mapping[str, str], theme: Theme, zoom: tuple[float, float] | None
) -> list[Component]:
    faults = [
        html.P(
            woven(
                "{letters} has no place on this axis: {fault}.", letters=swatch(letters[run.key]), fault=run.fault
            )
        )
        for run in view.runs
        if run.fault
    ]
    odd = notice(t("Not all runs can be placed here"), html.Span(faults), tone="warning") if faults else None
    return [
        odd,
        partings_panel(view, letters),
        html.Div(
            [_card(metric, view.axis, letters, theme, zoom) for metric in view.metrics], className="comparison"
        ),
    ]


def partings_panel(view: ComparisonView, letters: Mapping[str, str]) -> Component:
    """In the order in which things parted, since what moved first is nearest to the cause."""
    others = view.runs[1:]
    if not others:
        return None
    rows = sorted(view.metrics, key=_onset)
    first = swatch(letters[view.runs[0].key])
    head = html.Tr(
        [
            html.Th(t("Metric"), scope="col"),
            *(
                html.Th(woven("{one} against {first}", one=swatch(letters[run.key]), first=first), scope="col")
                for run in others
            ),
        ]
    )
    body = [
        html.Tr(
            [
                html.Td(html.Code(visible(metric.metric, LONGEST_NAME)), className="detail"),
                *(_cell(parting, view.axis, letters[parting.key]) for parting in metric.partings),
            ]
        )
        for metric in rows
    ]
    table = html.Div(
        html.Table([html.Thead(head), html.Tbody(body)], className="lines beside"),
        className="scroll",
        tabIndex="0",
        role="region",
        **aria(label=t("Where they diverge")),
    )
    return panel(
        t("Where they diverge"),
        [html.P(_first_words(view, letters)), table],
        count=t("earliest first"),
        key="partings",
    )


def _onset(metric: ComparedMetric) -> float:
    return min((p.at for p in metric.partings if p.at is not None and p.likeness in _APART), default=float("inf"))


def _first_words(view: ComparisonView, letters: Mapping[str, str]) -> list[Component]:
    """One sentence a run: what left the first run earliest."""
    said: list[Component] = []
    for position, run in enumerate(view.runs[1:]):
        found = [(m.metric, m.partings[position]) for m in view.metrics]
        apart = [(p.at, metric, p) for metric, p in found if p.at is not None and p.likeness in _APART]
        said.append(swatch(letters[run.key]))
        if not apart:
            same = bool(found) and all(p.likeness is Likeness.SAME for _, p in found)
            said.append(t(" is equal in every point. ") if same else t(" does not part in any of these metrics. "))
            continue
        at, metric, parting = min(apart, key=lambda row: row[0])
        said += woven(
            " diverges first at {place} in {metric}. ",
            place=html.B(_place(view.axis, parting, at)),
            metric=html.Code(visible(metric, 96)),
        )
    return said


def _place(axis: Axis, parting: Parting, at: float) -> str:
    words = place_words(axis, at)
    if axis is not Axis.STEP and parting.step is not None:
        words += t(" (its step {step})", step=parting.step)
    return (
        words
        if parting.within == 1
        else t("{words}, to within {steps}", words=words, steps=plural(parting.within, "step"))
    )


def _cell(parting: Parting, axis: Axis, letter: str) -> Component:
    told: list[Component] = [html.Span(letter, className="whose-value"), mark(LIKENESSES[parting.likeness])]
    if parting.at is not None and parting.likeness in _APART:
        told.append(html.Span(t(" from {place}", place=_place(axis, parting, parting.at))))
    notes = [parting.reason]
    if parting.different_step is not None:
        notes.append(t("first unequal at step {step}", step=parting.different_step))
    elif axis is Axis.STEP and parting.likeness is Likeness.TOGETHER and parting.within == 1:
        notes.append(t("never unequal"))
    told.append(html.Div(visible("; ".join(notes), 400), className="muted"))
    return html.Td(told, className="detail")


def _card(
    metric: ComparedMetric,
    axis: Axis,
    letters: Mapping[str, str],
    theme: Theme,
    zoom: tuple[float, float] | None,
) -> Component:
    mine = [letters[curve.key] for curve in metric.curves]
    figure = compared_figure(metric, mine, axis, theme, zoom=zoom)
    known = find(metric.metric)
    meaning = t(known.meaning) if known else t("A metric of your own.")
    graph = dcc.Graph(
        id={"type": "compared", "metric": metric.metric},
        figure=figure,
        config=GRAPH_CONFIG,
        style={"height": f"{figure['layout']['height']}px"},
    )
    caption = html.Figcaption(
        [
            html.Div(
                [
                    html.Span(visible(metric.metric, LONGEST_NAME), className="name"),
                    html.Span(t("log scale"), className="scale") if is_log(figure) else None,
                    html.Span([swatch(letter) for letter in mine], className="now"),
                ],
                className="caption",
            ),
            html.P([html.Span(unit(known.unit) if known else "", className="unit"), meaning], className="meaning"),
        ]
    )
    label = t(
        "{metric} of {runs}; {partings}",
        metric=metric.metric,
        runs=plural(len(mine), "run"),
        partings=_spoken(metric.partings, axis, letters),
    )
    return html.Figure(
        [
            caption,
            html.Div(graph, role="img", **aria(label=label)),
            html.Div(
                [part for curve in metric.curves for part in _notes(curve, letters[curve.key])], className="marks"
            ),
        ],
        className="chart",
    )


def _spoken(partings: Sequence[Parting], axis: Axis, letters: Mapping[str, str]) -> str:
    told = [
        f"{letters[p.key]} {LIKENESSES[p.likeness].said.lower()}"
        + (t(" from {place}", place=place_words(axis, p.at)) if p.at is not None else "")
        for p in partings
    ]
    return ", ".join(told) or t("one run alone")


def _notes(curve: ComparedCurve, letter: str) -> list[Component]:
    """NaN, +Inf, −Inf and missing in words, for those who cannot see or hover the marks."""
    rows = ((NAN, "nan", "nan"), (POS_INF, "pos-inf", "pos_inf"), (NEG_INF, "neg-inf", "neg_inf"))
    shapes = {NAN: "✕", POS_INF: "▲", NEG_INF: "▼"}
    counts = [(word, css, len(getattr(curve, name))) for word, css, name in rows]
    said: list[Component] = [
        html.Span([swatch(letter), html.B(f" {shapes[word]} {word}"), f" × {count:,}"], className=f"kind {css}")
        for word, css, count in counts
        if count
    ]
    reason, at = curve.missing_reason, curve.at
    if reason or not (at or said):
        words = visible(reason or t("no value here"), 200)
        said.append(html.Span([swatch(letter), html.B(t(" – missing")), ": ", *words], className="kind missing"))
    return said
