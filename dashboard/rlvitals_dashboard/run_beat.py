"""What one beat of a run's page sends: new points by index of their trace, and only the blocks that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dash import no_update

from rlvitals.contract.alert import AlertState
from rlvitals.contract.view import SeriesView
from rlvitals_dashboard import figures
from rlvitals_dashboard.api import Api, Change
from rlvitals_dashboard.components import Component
from rlvitals_dashboard.live import LONGEST_TAIL, Pulse
from rlvitals_dashboard.run_snapshot import PARTS, Snapshot
from rlvitals_dashboard.run_view import View
from rlvitals_dashboard.words import number


async def fresh_points(api: Api, view: View, pulse: Pulse, charts: Sequence[str]) -> dict[str, SeriesView]:
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


def beat_of(
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
        return answer(charts, beat=pulse.data(redraw=True), **parts)
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
    return answer(charts, extend=extend, values=values, beat=after.data(), **parts)


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


def answer(
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
