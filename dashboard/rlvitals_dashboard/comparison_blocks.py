"""The blocks of the page that puts runs side by side. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from dash import dcc, html

from rlvitals.contract.comparison import Axis
from rlvitals.contract.view import RunView
from rlvitals_dashboard.comparison_figure import LETTERS
from rlvitals_dashboard.comparison_view import LONGEST_KEY, METRICS_MAX, NO_BAND, RUNS_MAX, View
from rlvitals_dashboard.components import LONGEST_NAME, Component, aria, mark, panel, visible
from rlvitals_dashboard.language import phrase, t, woven
from rlvitals_dashboard.theme import LIGHTS, RUN_STATES
from rlvitals_dashboard.words import plural

Way = Callable[..., str]
OFFERED_MAX = 200
AXES = {
    Axis.STEP: phrase("Steps"),
    Axis.TOKENS: phrase("Tokens"),
    Axis.SAMPLES: phrase("Samples"),
    Axis.TIME: phrase("Time"),
}


def letter_of(view: View, key: str) -> str:
    return LETTERS[view.runs.index(key)]


def swatch(letter: str) -> Component:
    return html.Span(letter, className=f"swatch run-{letter.lower()}")


def run_chips(view: View, known: Mapping[str, RunView | None], prefix: str, way: Way) -> Component:
    """``known`` by key; None for one that is not there any more."""
    cards = [_chip(view, key, known.get(key), prefix, way) for key in view.runs]
    return html.Ul(cards, className="compared") if cards else None


def _chip(view: View, key: str, run: RunView | None, prefix: str, way: Way) -> Component:
    id_, _, attempt = key.partition("@")
    rest = tuple(other for other in view.runs if other != key)
    unseen = html.Span([" ", *visible(id_, LONGEST_NAME)], className="unseen")
    remove = dcc.Link([t("Remove"), unseen], href=way(runs=rest))
    if run is None:
        words = html.Span(t("is not there: it was deleted, or the address is wrong."), className="muted")
        return html.Li([swatch(letter_of(view, key)), html.Code(visible(key, LONGEST_KEY)), words, remove])
    first = None
    if view.runs[0] != key:
        first = dcc.Link(t("Make it the baseline"), href=way(runs=(key, *rest)))
    told = t("attempt {attempt}", attempt=attempt) if attempt else ""
    steps = t("no step yet") if run.last_step is None else t("step {step}", step=run.last_step)
    return html.Li(
        [
            html.Div(
                [
                    swatch(letter_of(view, key)),
                    dcc.Link(visible(run.name or run.id, LONGEST_NAME), href=f"{prefix}run/{quote(id_, safe='')}"),
                    mark(LIGHTS[run.light]),
                    mark(RUN_STATES[run.state]),
                ],
                className="line",
            ),
            html.Div(
                [
                    html.Code(visible(id_, LONGEST_NAME)),
                    html.Span(visible(run.project, LONGEST_NAME)),
                    html.Span(visible(told, LONGEST_NAME)) if told else None,
                    html.Span(steps),
                ],
                className="line muted",
            ),
            html.Div(
                [html.Strong(t("the baseline")) if first is None else first, remove],
                className="line",
            ),
        ]
    )


def chooser(view: View, runs: Sequence[RunView], metrics: Sequence[str], prefix: str, way: Way) -> Component:
    """Forms as the web knows them: the answer is a page with an address of its own."""
    axes = [
        dcc.Link(t(word), href=way(by=axis), className="chip here" if axis is view.by else "chip")
        for axis, word in AXES.items()
    ]
    return html.Div(
        [
            _add_run(view, runs, prefix),
            _add_metric(view, metrics, prefix),
            html.Div([html.Span(t("Along"), className="muted"), *axes], className="chips"),
        ],
        className="filters",
    )


def _add_run(view: View, runs: Sequence[RunView], prefix: str) -> Component:
    if len(view.runs) >= RUNS_MAX:
        return html.P(t("{count} runs are the most that can be told apart.", count=RUNS_MAX), className="muted")
    project = next((run.project for run in runs if run.id in {key.partition("@")[0] for key in view.runs}), None)
    ranked = sorted((run for run in runs if run.id not in view.runs), key=lambda run: run.project != project)
    options = [html.Option(f"{run.name or run.id} ({run.project})"[:120], value=run.id) for run in ranked]
    return _form(view, prefix, "add", t("Add a run"), t("its id, or id@attempt"), options[:OFFERED_MAX])


def _add_metric(view: View, metrics: Sequence[str], prefix: str) -> Component:
    if not view.runs or len(view.metrics) >= METRICS_MAX:
        return None
    options = [html.Option(value=name) for name in metrics if name not in view.metrics]
    return _form(view, prefix, "and", t("Add a metric"), t("its name"), options[:OFFERED_MAX])


def _form(view: View, prefix: str, name: str, label: str, holder: str, options: Sequence[Component]) -> Component:
    """What cannot be seen of the address goes along hidden."""
    kept = [dcc.Input(type="hidden", name=key, value=value) for key, value in view.asked().items()]
    field = dcc.Input(
        id=f"compare-{name}",
        name=name,
        list=f"compare-{name}s",
        placeholder=holder,
        autoComplete="off",
        maxLength=200,
    )
    return html.Form(
        [
            html.Label([label, field]),
            html.Datalist(list(options), id=f"compare-{name}s"),
            *kept,
            html.Button(t("Add"), type="submit", className="button"),
        ],
        action=f"{prefix}compare",
        method="GET",
        className="filter",
    )


def metric_chips(view: View, shown: Sequence[str], way: Way) -> Component:
    """Those that are drawn, each with the way to be rid of it."""
    links = [
        dcc.Link(
            [
                html.Span(t("Leave out "), className="unseen"),
                *visible(name, LONGEST_NAME),
                html.Span(" ✕", **aria(hidden="true")),
            ],
            href=way(metrics=tuple(other for other in shown if other != name)),
            className="chip",
            title=t("Leave it out"),
        )
        for name in shown
    ]
    return html.Div(links, className="chips") if len(shown) > 1 else None


def nothing_chosen(runs: Sequence[RunView], way: Way) -> Component:
    """The page teaches itself: two runs of one project, one press away."""
    if not runs:
        words = t("No run has reported yet. Attach a trainer, or import a log, and come back.")
        return html.Div([html.H2(t("Nothing to compare yet")), html.P(words)], className="empty")
    projects: dict[str, list[RunView]] = {}
    for run in runs:
        projects.setdefault(run.project, []).append(run)
    offers = [
        html.Li(
            dcc.Link(
                woven(
                    "{one} and {other}",
                    one=html.Span(visible(some[1].name or some[1].id, 60)),
                    other=visible(some[0].name or some[0].id, 60),
                ),
                href=way(runs=(some[1].id, some[0].id)),
            )
        )
        for some in projects.values()
        if len(some) > 1
    ][:8]
    words = t(
        "Choose two to six runs above. The others are held against the first: where each "
        "leaves it is marked, and behind the curves stands what healthy runs of its project "
        "had."
    )
    head = html.P(t("The newest two of each project:")) if offers else None
    return html.Div(
        [html.H2(t("Choose runs to compare")), html.P(words), head, html.Ul(offers)], className="empty"
    )


def alone(view: View, runs: Sequence[RunView], way: Way) -> Component:
    """One run: who else there is in its project."""
    here = next((run for run in runs if run.id == view.runs[0].partition("@")[0]), None)
    kin = [run for run in runs if here is not None and run.project == here.project and run.id != here.id][:6]
    links = [
        dcc.Link(["+ ", *visible(run.name or run.id, 60)], href=way(runs=(*view.runs, run.id)), className="chip")
        for run in kin
    ]
    words = t("Add a second run to see where the two part.") + (t(" Of the same project:") if kin else "")
    return panel(t("One run alone"), [html.P(words), html.Div(links, className="chips")])


def healthy_words(view: View, healthy: Sequence[str], reason: str, prefix: str, way: Way) -> Component:
    """Which runs stand behind the curves, and how to choose others."""
    switch = (
        dcc.Link(t("Show it"), href=way(healthy=()))
        if view.healthy == (NO_BAND,)
        else dcc.Link(t("Leave it out"), href=way(healthy=(NO_BAND,)))
    )
    if not healthy:
        back = switch if view.healthy == (NO_BAND,) else None
        return html.P(
            woven("No healthy band: {reason}. {back}", reason=visible(reason, 300), back=back),
            className="muted band-words",
        )
    names = [
        dcc.Link(visible(run, 60), href=f"{prefix}run/{quote(run.partition('@')[0], safe='')}") for run in healthy
    ]
    parts: list[Any] = [part for name in names for part in (name, ", ")][:-1]
    head = html.Span(t("Healthy band"), className="band-swatch")
    told = woven(
        "{head} of {runs}, {reason}: {parts}. {switch}",
        head=head,
        runs=plural(len(healthy), "run"),
        reason=reason,
        parts=parts,
        switch=switch,
    )
    return html.P(told, className="muted band-words")
