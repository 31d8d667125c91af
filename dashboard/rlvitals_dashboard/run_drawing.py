"""Draws the charts of a run: all of them anew, or other steps into those that a browser shows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlvitals.contract.view import SeriesView
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.chart_card import ChartParts
from rlvitals_dashboard.charts import Charts, card_parts, families
from rlvitals_dashboard.components import Component
from rlvitals_dashboard.figures import Drawing, Span, scale_of
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import Pulse, fingerprint
from rlvitals_dashboard.run_snapshot import Snapshot
from rlvitals_dashboard.run_tools import choices, zoom_words
from rlvitals_dashboard.run_view import View
from rlvitals_dashboard.smoothing import find_smoothing
from rlvitals_dashboard.theme import pick


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """All charts, made anew; ``pulse`` says what a beat goes on with."""

    families: list[Component]
    tools: list[Component]
    pulse: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherSteps:
    """For charts that are there: ``parts`` by metric, and a ``pulse`` that speaks of these alone."""

    parts: dict[str, ChartParts]
    tools: list[Component]
    pulse: dict[str, Any]


def fetch_ahead(api: Api, view: View, now: Snapshot, version: int) -> None:
    """While a browser builds the page, the points come that it will ask for next; it finds them in `Api.looks`."""
    metrics = [m.metric for m in now.drawn(view)]
    coming = asyncio.ensure_future(_all_series(api, view, now, version, metrics))
    _COMING.add(coming)
    coming.add_done_callback(_arrived)


_COMING: set[asyncio.Future[Any]] = set()
"""The event loop itself holds its tasks weakly."""


def _arrived(coming: asyncio.Future[Any]) -> None:
    """What went wrong is told to who asks next."""
    _COMING.discard(coming)
    if not coming.cancelled():
        coming.exception()


async def draw_run(api: Api, view: View, theme: str) -> Drawn:
    version = (await api.changes(view.run, 0, 0)).version
    now = await Snapshot.share(api, view, version)
    charts = await _charts(api, view, theme, now, version, [m.metric for m in now.drawn(view)])
    prints = now.prints(view)
    frame = _frame(now, view, theme, prints)
    return Drawn(
        families=families(now.panels(view), charts),
        tools=_tools(now, view),
        pulse=_pulse(version, now, charts, prints, frame).data(),
    )


async def draw_steps(api: Api, view: View, theme: str, frame: int, metrics: Sequence[str]) -> OtherSteps | None:
    """None where the charts that were drawn by ``frame`` do not fit any more and must be made anew."""
    version = (await api.changes(view.run, 0, 0)).version
    now = await Snapshot.share(api, view, version)
    shown, prints = {m.metric: m for m in now.drawn(view)}, now.prints(view)
    if frame != _frame(now, view, theme, prints) or not shown.keys() >= set(metrics):
        return None
    charts = await _charts(api, view, theme, now, version, metrics)
    return OtherSteps(
        parts={name: card_parts(shown[name], charts) for name in metrics},
        tools=_tools(now, view),
        pulse=_pulse(version, now, charts, prints, frame).data(),
    )


async def _charts(api: Api, view: View, theme: str, now: Snapshot, version: int, metrics: Sequence[str]) -> Charts:
    series, *earlier = await _all_series(api, view, now, version, metrics)
    names = [t("attempt {number}", number=a.ordinal) for a in now.earlier(view)]
    drawing = Drawing(
        theme=pick(theme),
        span=_span(view, now),
        alerts=now.alerts,
        commands=now.commands,
        rules=now.rules,
        wish=view.scale,
        smoothing=find_smoothing(view.smooth),
        earlier=list(zip(names, earlier, strict=True)),
    )
    return Charts(
        drawing=drawing,
        series=series,
        run=view.run,
        attempt=view.attempt,
        more=view.more,
        closed=view.closed,
    )


def _tools(now: Snapshot, view: View) -> list[Component]:
    return [*choices(now.run, view), *zoom_words(view)]


async def _all_series(
    api: Api, view: View, now: Snapshot, version: int, metrics: Sequence[str]
) -> list[dict[str, SeriesView]]:
    """Of the attempt that is shown, then of those that are drawn behind it."""

    async def of(attempt: str) -> dict[str, SeriesView]:
        asked = ("series", view.run, attempt, tuple(metrics), view.first, view.last, version)
        return await api.looks.ask(
            asked, lambda: api.series(view.run, metrics, attempt=attempt, first=view.first, last=view.last)
        )

    return await asyncio.gather(*(of(attempt) for attempt in (view.attempt, *(a.id for a in now.earlier(view)))))


def _pulse(version: int, now: Snapshot, charts: Charts, prints: Mapping[str, int], frame: int) -> Pulse:
    series, drawing = charts.series, charts.drawing
    scales = {m: scale_of(s, drawing).code for m, s in series.items()}
    smoothing = drawing.smoothing
    return Pulse(
        version=version,
        last_step=now.run.last_step,
        drawn=now.run.last_step,
        at={m: s.step[-1] if s.step else drawing.span.first - 1 for m, s in series.items()},
        enveloped=tuple(m for m, s in series.items() if s.bucket > 1),
        zoomed=drawing.span.zoomed,
        prints=prints,
        frame=frame,
        scales={m: code for m, code in scales.items() if code is not None},
        smooth={m: smoothing.fold(s.value)[1] for m, s in series.items()} if smoothing else {},
    )


def _frame(now: Snapshot, view: View, theme: str, prints: Mapping[str, int]) -> int:
    """Of all that charts are drawn by, except for the steps that they show."""
    limits = [(r.rule, r.severity, r.metric, r.threshold, r.dormant) for r in now.rules]
    return fingerprint(replace(view, first=None, last=None).data(), theme, prints["charts"], limits)


def _span(view: View, now: Snapshot) -> Span:
    """Of all charts alike, also of those that are not asked for now: from where the shown attempts began."""
    if view.first is not None and view.last is not None:
        return Span(first=view.first, last=view.last, zoomed=True)
    by_age = sorted(now.run.attempts, key=lambda a: -a.ordinal)
    shown = [a for a in by_age if a.id == view.attempt] if view.attempt else [*by_age[:1], *now.earlier(view)]
    live = () if view.attempt or now.run.last_step is None else (now.run.last_step,)
    return Span(
        first=min((a.first_step for a in shown if a.first_step is not None), default=0),
        last=max((*live, *(a.last_step for a in shown if a.last_step is not None)), default=0),
    )
