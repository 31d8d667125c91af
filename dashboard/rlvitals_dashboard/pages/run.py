"""One run: its verdict, what waits for a decision, its alerts, and its charts, all live.

`layout` is the page as it is asked for; `draw` draws the charts whole (first load, zoom, fold, theme, new
metric); `live` is the heart that appends what is new. What a person does is in `deeds`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from dash import ALL, Dash, Input, Output, State, dcc, html, no_update
from dash.exceptions import PreventUpdate

from rlvitals.contract.alert import Alert, AlertState
from rlvitals.contract.command import CommandState
from rlvitals.contract.hooks import HooksView
from rlvitals.contract.view import (
    CommandView,
    EventView,
    MetricView,
    RuleView,
    RunView,
    SeriesView,
    TextView,
)
from rlvitals_dashboard import figures, nav
from rlvitals_dashboard.alert_panel import alert_list
from rlvitals_dashboard.api import Api, ApiError, Change, SignInNeeded
from rlvitals_dashboard.charts import Drawing, families
from rlvitals_dashboard.command_panel import command_list, decision
from rlvitals_dashboard.components import (
    Component,
    attempt_choices,
    notice,
    panel,
    rule_list,
    run_head,
    text_list,
)
from rlvitals_dashboard.config_panel import config_panel
from rlvitals_dashboard.deeds import verdict_place
from rlvitals_dashboard.hook_panel import checkpoint_panel, hook_panel
from rlvitals_dashboard.live import LONGEST_TAIL, WATCH_MS, Pulse, after_trouble, fingerprint, next_change
from rlvitals_dashboard.nav import PREFIX
from rlvitals_dashboard.panels import FOLDED, Panel, arrange
from rlvitals_dashboard.theme import pick
from rlvitals_dashboard.words import number

PARTS = ("head", "hooks", "decisions", "alerts", "actions", "checkpoints", "rules", "config", "texts")
"""Blocks that are each replaced only when what they show has changed."""
BESIDE = ("alerts", "actions", "checkpoints", "rules", "config")
"""Of these what stands beside the charts, below the decisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the person looks at; the URL says the same."""

    run: str
    attempt: str = ""
    first: int | None = None
    last: int | None = None
    more: frozenset[str] = frozenset()
    closed: frozenset[str] = FOLDED

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> View:
        """From the browser's store. Anything that is no whole number is no range."""
        first, last = _whole(data.get("from")), _whole(data.get("to"))
        return cls(
            run=str(data.get("run", "")),
            attempt=str(data.get("attempt") or ""),
            first=first if last is not None else None,
            last=last if first is not None else None,
            more=_keys(data.get("more"), frozenset()),
            closed=_keys(data.get("closed"), FOLDED),
        )

    def data(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "attempt": self.attempt,
            "from": self.first,
            "to": self.last,
            "more": sorted(self.more),
            "closed": sorted(self.closed),
        }


def _whole(value: object) -> int | None:
    try:
        return None if value is None or isinstance(value, bool) else int(float(str(value)))
    except (ValueError, OverflowError):
        return None


def _keys(value: object, default: frozenset[str]) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset(filter(None, value.split(",")))
    return frozenset(str(v) for v in value) if isinstance(value, (list, tuple)) else default


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What the API says of a run at one moment."""

    run: RunView
    metrics: Sequence[MetricView]
    alerts: Sequence[Alert]
    commands: Sequence[CommandView]
    rules: Sequence[RuleView]
    texts: Sequence[TextView]
    hooks: HooksView
    checkpoints: Sequence[EventView]

    @classmethod
    async def take(cls, api: Api, view: View) -> Snapshot:
        judged = asyncio.gather(api.alerts(view.run), api.commands(view.run), api.rules(view.run))
        told = asyncio.gather(api.texts(view.run), api.hooks(view.run, view.attempt), api.checkpoints(view.run))
        run, metrics, (alerts, commands, rules), (texts, hooks, checkpoints) = await asyncio.gather(
            api.run(view.run), api.metrics(view.run, view.attempt), judged, told
        )
        here = view.attempt or _newest(run)
        mine = [a for a in alerts if not here or a.attempt == here or a.state is AlertState.FIRING]
        return cls(
            run=run,
            metrics=metrics,
            alerts=mine,
            commands=commands,
            rules=rules,
            texts=texts,
            hooks=hooks,
            checkpoints=checkpoints,
        )

    @property
    def panels(self) -> tuple[Panel, ...]:
        return arrange(self.metrics, self.alerts)

    def drawn(self, view: View) -> list[MetricView]:
        shown = [p.drawn(p.key in view.more) for p in self.panels if p.key not in view.closed]
        return [metric for metrics in shown for metric in metrics]

    def prints(self, view: View) -> dict[str, int]:
        """Of each part, and of what makes a whole new drawing of the charts needed."""
        bands = [(a.id, a.state, a.since_step, a.resolved_step, a.metric) for a in self.alerts]
        marks = [(c.id, c.step) for c in self.commands if c.state is CommandState.APPLIED]
        names = [(p.key, [m.metric for m in p.drawn(p.key in view.more)], len(p.missing)) for p in self.panels]
        return {
            "head": fingerprint(replace(self.run, config={}, capabilities={})),
            "hooks": fingerprint(self.hooks),
            "checkpoints": fingerprint(self.checkpoints),
            "config": fingerprint(self.run.config),
            "decisions": fingerprint([c.id for c in self._proposed()]),
            "alerts": fingerprint([replace(a, value=None) for a in self.alerts]),
            "actions": fingerprint([c for c in self.commands if c.state is not CommandState.PROPOSED]),
            "rules": fingerprint([(r.rule, r.dormant, r.truth, r.reason) for r in self.rules]),
            "texts": fingerprint(self.texts),
            "charts": fingerprint(bands, marks, names),
        }

    def part(self, name: str) -> Component:
        makers: dict[str, Callable[[], Component]] = {
            "head": lambda: run_head(self.run),
            "hooks": lambda: hook_panel(self.hooks),
            "checkpoints": lambda: checkpoint_panel(self.checkpoints),
            "config": lambda: config_panel(self.run.config),
            "decisions": self._decisions,
            "alerts": lambda: panel("Alerts", alert_list(self.alerts), count=self._count()),
            "actions": lambda: panel("Actions", [command_list(self.commands, PREFIX), self._ask()]),
            "rules": lambda: panel("Rules", rule_list(self.rules)),
            "texts": lambda: panel("Recent completions", text_list(self.texts), count="worst first"),
        }
        return makers[name]()

    def _ask(self) -> Component:
        return dcc.Link("Ask this run for something", href=f"{PREFIX}control?run={quote(self.run.id, safe='')}")

    def _proposed(self) -> list[CommandView]:
        return [c for c in self.commands if c.state is CommandState.PROPOSED]

    def _decisions(self) -> Component:
        waiting = self._proposed()
        if not waiting:
            return None
        return panel("Waits for your decision", [decision(c, self.run) for c in waiting], key="decisions")

    def _count(self) -> str:
        firing = sum(a.state is AlertState.FIRING for a in self.alerts)
        return f"{firing} firing" if firing else ""


def _newest(run: RunView) -> str:
    return max(run.attempts, key=lambda a: a.ordinal).id if run.attempts else ""


async def layout(api: Api, run: str, query: Mapping[str, str]) -> Component:
    view = View.read(dict(query) | {"run": run})
    now = await Snapshot.take(api, view)
    part = {name: html.Div(now.part(name), id=f"run-{name}") for name in PARTS}
    attempts = dcc.Dropdown(
        id="attempt", options=attempt_choices(now.run), value=view.attempt, clearable=False, searchable=False
    )
    tools = html.Div(
        [
            html.Div(attempts, className="attempts", hidden=len(now.run.attempts) < 2),
            html.Div(id="zoom", className="zoom"),
        ],
        className="tools",
    )
    return html.Main(
        [
            part["head"],
            nav.run_tabs(PREFIX, run, "Charts"),
            part["hooks"],
            html.Div(
                [
                    html.Aside([part["decisions"], *(part[name] for name in BESIDE)]),
                    html.Div([tools, html.Div(id="families"), part["texts"]], className="main"),
                ],
                className="columns",
            ),
            verdict_place(),
            dcc.Store(id="view", data=view.data()),
            dcc.Store(id="pulse"),
            dcc.Store(id="beat"),
            dcc.Store(id="redraw", data=0),
            dcc.Interval(id="watch", interval=WATCH_MS),
        ],
        className="page run",
    )


def register(app: Dash, api: Api) -> None:
    """All callbacks of the page. Each is short: read, ask, draw."""
    _register_draw(app, api)
    _register_live(app, api)


def _register_draw(app: Dash, api: Api) -> None:
    @app.callback(
        Output("families", "children"),
        Output("zoom", "children"),
        Output("pulse", "data"),
        Input("view", "data"),
        Input("theme", "data"),
        Input("redraw", "data"),
    )
    async def draw(data: Mapping[str, Any], theme: str, _redraw: int) -> tuple[Any, Any, Any]:
        view = View.read(data)
        try:
            version = (await api.changes(view.run, 0, 0)).version
            now = await Snapshot.take(api, view)
            shown = now.drawn(view)
            series = await api.series(
                view.run,
                [m.metric for m in shown],
                attempt=view.attempt,
                first=view.first,
                last=view.last,
            )
        except ApiError as error:
            return notice(error.title, error.detail, tone="warning"), "", no_update
        span = _span(view, now, series)
        drawing = Drawing(
            theme=pick(theme),
            span=span,
            series=series,
            alerts=now.alerts,
            commands=now.commands,
            more=view.more,
            closed=view.closed,
        )
        pulse = Pulse(
            version=version,
            last_step=now.run.last_step,
            drawn=now.run.last_step,
            at={m: s.step[-1] if s.step else span.first - 1 for m, s in series.items()},
            enveloped=tuple(m for m, s in series.items() if s.bucket > 1),
            zoomed=span.zoomed,
            prints=now.prints(view),
        )
        return families(now.panels, drawing), _zoom_words(view), pulse.data()


def _span(view: View, now: Snapshot, series: Mapping[str, SeriesView]) -> figures.Span:
    if view.first is not None and view.last is not None:
        return figures.Span(first=view.first, last=view.last, zoomed=True)
    firsts = [s.step[0] for s in series.values() if s.step]
    lasts = [s.step[-1] + s.bucket - 1 for s in series.values() if s.step]
    newest = now.run.last_step if not view.attempt and now.run.last_step is not None else 0
    return figures.Span(first=min(firsts, default=0), last=max(lasts, default=newest))


def _zoom_words(view: View) -> Component:
    if view.first is None or view.last is None:
        return html.Span("Drag across a chart to zoom all of them.", className="muted hint")
    words = html.Span(f"Steps {view.first:,} to {view.last:,}", className="badge tone-info")
    return [words, html.Button("Back to the whole run", id="unzoom", className="button quiet")]


def _register_live(app: Dash, api: Api) -> None:
    """Its outputs are no inputs of `draw`: Dash would hold a drawing back until this long wait is over. A beat
    that finds that the charts must be drawn anew says so, and the browser's own script asks for it."""

    @app.callback(
        *(Output(f"run-{name}", "children") for name in PARTS),
        Output({"type": "chart", "metric": ALL}, "extendData"),
        Output({"type": "now", "metric": ALL}, "children"),
        Output("beat", "data"),
        Input("pulse", "data"),
        State("view", "data"),
        State({"type": "chart", "metric": ALL}, "id"),
        websocket=True,
        persistent=True,
        prevent_initial_call=True,
    )
    async def live(
        data: object, view_data: Mapping[str, Any], ids: Sequence[Mapping[str, str]]
    ) -> tuple[Any, ...]:
        pulse, view = Pulse.read(data), View.read(view_data)
        if pulse is None:
            raise PreventUpdate
        charts = [i["metric"] for i in ids]
        try:
            change = await next_change(api, view.run, pulse.version)
            now = await Snapshot.take(api, view)
            fresh = await _fresh(api, view, pulse, charts)
        except SignInNeeded as error:
            return _answer(charts, head=notice("Sign in to go on", str(error), tone="warning"))
        except ApiError as error:
            return _answer(charts, beat=pulse.data(trouble=await after_trouble(error)))
        return _beat(pulse, change, now, view, fresh, charts)


async def _fresh(api: Api, view: View, pulse: Pulse, charts: Sequence[str]) -> dict[str, SeriesView]:
    """The points after those that are drawn; a little overlap, since a writer may be late with its share."""
    if pulse.zoomed or not charts:
        return {}
    known = [pulse.at[m] for m in charts if m in pulse.at]
    newest = max(known, default=-1)
    first = max(min(known, default=0) + 1, newest - LONGEST_TAIL)
    found = await api.series(view.run, charts, attempt=view.attempt, first=first)
    return {m: _after(s, pulse.at.get(m, -1)) for m, s in found.items()}


def _after(series: SeriesView, step: int) -> SeriesView:
    keep = [i for i, at in enumerate(series.step) if at > step]
    return replace(
        series,
        step=tuple(series.step[i] for i in keep),
        value=tuple(series.value[i] for i in keep),
        nan=tuple(at for at in series.nan if at > step),
        pos_inf=tuple(at for at in series.pos_inf if at > step),
        neg_inf=tuple(at for at in series.neg_inf if at > step),
    )


def _beat(
    pulse: Pulse,
    change: Change,
    now: Snapshot,
    view: View,
    fresh: Mapping[str, SeriesView],
    charts: Sequence[str],
) -> tuple[Any, ...]:
    prints = now.prints(view)
    parts = {n: now.part(n) for n in PARTS if prints[n] != pulse.prints.get(n)}
    if not pulse.zoomed and _needs_drawing(pulse, prints, fresh, now.run.last_step):
        return _answer(charts, beat=pulse.data(redraw=True), **parts)
    grown = {m: s for m, s in fresh.items() if s.step}
    last = max((s.step[-1] for s in grown.values()), default=pulse.last_step or 0)
    firing = {a.metric for a in now.alerts if a.state is AlertState.FIRING}
    extend = {m: _extend(fresh.get(m), m in pulse.enveloped, m in firing, last) for m in charts} if grown else {}
    after = replace(
        pulse,
        version=change.version,
        last_step=now.run.last_step,
        at={**pulse.at, **{m: s.step[-1] for m, s in grown.items()}},
        prints=prints | {"charts": pulse.prints.get("charts", 0)} if pulse.zoomed else prints,
    )
    values = {m: number(s.value[-1]) for m, s in grown.items()}
    return _answer(charts, extend=extend, values=values, beat=after.data(), **parts)


def _needs_drawing(
    pulse: Pulse, prints: Mapping[str, int], fresh: Mapping[str, SeriesView], last_step: int | None
) -> bool:
    if prints["charts"] != pulse.prints.get("charts"):
        return True
    if any(s.bucket > 1 or figures.nonfinite_kinds(s) for s in fresh.values()):
        return True
    return last_step is not None and last_step - (pulse.drawn or 0) > max(LONGEST_TAIL, (pulse.drawn or 0) // 8)


def _extend(series: SeriesView | None, enveloped: bool, firing: bool, last_step: int) -> list[Any]:
    shown = series or SeriesView(run="", attempt="", metric="", bucket=1, step=(), value=())
    return list(figures.extension(shown, enveloped=enveloped, firing=firing, last_step=last_step))


def _answer(
    charts: Sequence[str],
    *,
    extend: Mapping[str, Any] | None = None,
    values: Mapping[str, str] | None = None,
    beat: Any = no_update,
    **parts: Component,
) -> tuple[Any, ...]:
    """In the order of the callback's outputs; whatever is not given stays as it is."""
    return (
        *(parts.get(name, no_update) for name in PARTS),
        [(extend or {}).get(metric, no_update) for metric in charts],
        [(values or {}).get(metric, no_update) for metric in charts],
        beat,
    )
