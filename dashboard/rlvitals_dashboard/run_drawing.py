"""Draws the charts of a run whole: asks for what is shown, and says what a beat goes on with."""

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
    """``families`` is None where the charts that are there need only show other steps: ``parts`` are theirs."""

    families: list[Component] | None
    parts: list[ChartParts]
    tools: list[Component]
    pulse: dict[str, Any]


async def draw_run(
    api: Api, view: View, theme: str, there: Pulse | None = None, charts: Sequence[str] = ()
) -> Drawn:
    """``there`` and ``charts`` are what the browser shows already."""
    version = (await api.changes(view.run, 0, 0)).version
    now = await Snapshot.share(api, view, version)
    drawn = now.drawn(view)
    shown = [m.metric for m in drawn]
    before = now.earlier(view)
    series, *earlier = await asyncio.gather(
        *(_series(api, view, shown, attempt) for attempt in (view.attempt, *(a.id for a in before)))
    )
    names = [t("attempt {number}", number=a.ordinal) for a in before]
    drawing = Drawing(
        theme=pick(theme),
        span=_span(view, now, [series, *earlier]),
        alerts=now.alerts,
        commands=now.commands,
        rules=now.rules,
        wish=view.scale,
        smoothing=find_smoothing(view.smooth),
        earlier=list(zip(names, earlier, strict=True)),
    )
    whole = Charts(
        drawing=drawing,
        series=series,
        run=view.run,
        attempt=view.attempt,
        more=view.more,
        closed=view.closed,
    )
    pulse = _pulse(version, now, view, series, drawing, theme)
    again = bool(charts) and there is not None and there.frame == pulse.frame and list(charts) == shown
    return Drawn(
        families=None if again else families(now.panels(view), whole),
        parts=[card_parts(metric, whole) for metric in drawn] if again else [],
        tools=[*choices(now.run, view), *zoom_words(view)],
        pulse=pulse.data(),
    )


async def _series(api: Api, view: View, metrics: list[str], attempt: str) -> dict[str, SeriesView]:
    return await api.series(view.run, metrics, attempt=attempt, first=view.first, last=view.last)


def _pulse(
    version: int, now: Snapshot, view: View, series: Mapping[str, SeriesView], drawing: Drawing, theme: str
) -> Pulse:
    scales = {m: scale_of(s, drawing).code for m, s in series.items()}
    smoothing, prints = drawing.smoothing, now.prints(view)
    limits = [(r.rule, r.severity, r.metric, r.threshold, r.dormant) for r in now.rules]
    return Pulse(
        version=version,
        last_step=now.run.last_step,
        drawn=now.run.last_step,
        at={m: s.step[-1] if s.step else drawing.span.first - 1 for m, s in series.items()},
        enveloped=tuple(m for m, s in series.items() if s.bucket > 1),
        zoomed=drawing.span.zoomed,
        prints=prints,
        frame=fingerprint(replace(view, first=None, last=None).data(), theme, prints["charts"], limits),
        scales={m: code for m, code in scales.items() if code is not None},
        smooth={m: smoothing.fold(s.value)[1] for m, s in series.items()} if smoothing else {},
    )


def _span(view: View, now: Snapshot, drawn: list[dict[str, SeriesView]]) -> Span:
    if view.first is not None and view.last is not None:
        return Span(first=view.first, last=view.last, zoomed=True)
    every = [s for series in drawn for s in series.values() if s.step]
    newest = now.run.last_step if not view.attempt and now.run.last_step is not None else 0
    lasts = (s.step[-1] + s.bucket - 1 for s in every)
    return Span(first=min((s.step[0] for s in every), default=0), last=max(lasts, default=newest))
