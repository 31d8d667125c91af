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
from rlvitals_dashboard.figure_marks import nonfinite_kinds
from rlvitals_dashboard.figure_scale import Scale
from rlvitals_dashboard.live import LONGEST_TAIL, Pulse, prints_text
from rlvitals_dashboard.run_snapshot import PARTS, Snapshot, of_parts
from rlvitals_dashboard.run_view import Glance, View
from rlvitals_dashboard.smoothing import find_smoothing
from rlvitals_dashboard.words import number

LOOK_BACK = 16
"""Steps: where a look at new points begins is a multiple of it."""


async def fresh_points(
    api: Api,
    view: View,
    pulse: Pulse,
    change: Change,
    charts: Sequence[str],
    glance: Glance | None = None,
) -> dict[str, SeriesView]:
    """The points after those that are drawn; a little overlap, since a writer may be late with its share."""
    if _held(pulse, glance) or not charts:
        return {}
    known = [pulse.at[m] for m in charts if m in pulse.at]
    newest = max(known, default=-1)
    first = max(min(known, default=0) + 1, newest - LONGEST_TAIL)
    # pages that are a point apart ask the same
    first -= first % LOOK_BACK
    asked = ("tails", view.run, view.attempt, tuple(charts), first, change.version)
    found = await api.looks.ask(asked, lambda: api.tails(view.run, charts, attempt=view.attempt, first=first))
    return {m: _after(s, pulse.at.get(m, -1)) for m, s in found.items()}


def beat_of(
    pulse: Pulse,
    change: Change,
    now: Snapshot,
    view: View,
    fresh: Mapping[str, SeriesView],
    charts: Sequence[str],
    glance: Glance | None = None,
) -> tuple[Any, ...]:
    """What holds the charts, a zoom or a person, holds nothing else: alerts and verdict stay live."""
    prints, held = now.prints(view), _held(pulse, glance)
    parts = {n: now.part(n) for n in PARTS if prints[n] != pulse.prints.get(n)}
    shown = of_parts(prints)
    if not held and _needs_drawing(pulse, prints, fresh, now.run.last_step):
        return answer(charts, beat=pulse.data(redraw=True), prints=shown, **parts)
    grown = {m: s for m, s in fresh.items() if s.step}
    last = max((s.step[-1] for s in grown.values()), default=pulse.last_step or 0)
    smooth = {m: _smoothed(view, pulse, s) for m, s in grown.items()} if view.smooth else {}
    firing = {a.metric for a in now.alerts if a.state is AlertState.FIRING}
    extend = {m: _extend(pulse, m, fresh.get(m), m in firing, last, smooth) for m in charts} if grown else {}
    after = replace(
        pulse,
        version=change.version,
        last_step=now.run.last_step,
        at={**pulse.at, **{m: s.step[-1] for m, s in grown.items()}},
        prints=prints | {"charts": pulse.prints.get("charts", 0)} if held else prints,
        smooth={**pulse.smooth, **{m: memory for m, (_, memory) in smooth.items()}},
    )
    values = {m: number(s.value[-1]) for m, s in grown.items()}
    return answer(charts, extend=extend, values=values, beat=after.data(), prints=shown, **parts)


def answer(
    charts: Sequence[str],
    *,
    extend: Mapping[str, Any] | None = None,
    values: Mapping[str, str] | None = None,
    beat: Any = no_update,
    prints: Mapping[str, int] | None = None,
    **parts: Component,
) -> tuple[Any, ...]:
    """In the order of the callback's outputs; whatever is not given stays as it is."""
    return (
        *(parts.get(name, no_update) for name in PARTS),
        prints_text(prints) if prints is not None else no_update,
        extend or no_update,
        [(values or {}).get(metric, no_update) for metric in charts],
        beat,
    )


def _held(pulse: Pulse, glance: Glance | None) -> bool:
    return pulse.zoomed or (glance is not None and glance.paused)


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


def _needs_drawing(
    pulse: Pulse, prints: Mapping[str, int], fresh: Mapping[str, SeriesView], last_step: int | None
) -> bool:
    if prints["charts"] != pulse.prints.get("charts"):
        return True
    if any(s.bucket > 1 or nonfinite_kinds([s]) for s in fresh.values()):
        return True
    scales = {m: Scale.read(code) for m, code in pulse.scales.items()}
    if any(not scales[m].takes(value) for m, s in fresh.items() if m in scales for value in s.value):
        return True
    return last_step is not None and last_step - (pulse.drawn or 0) > max(LONGEST_TAIL, (pulse.drawn or 0) // 8)


def _smoothed(view: View, pulse: Pulse, series: SeriesView) -> tuple[list[float | None], tuple[float, ...]]:
    smoothing = find_smoothing(view.smooth)
    memory = tuple(pulse.smooth.get(series.metric, ()))
    return smoothing.fold(series.value, memory) if smoothing else ([], ())


def _extend(
    pulse: Pulse,
    metric: str,
    series: SeriesView | None,
    firing: bool,
    last_step: int,
    smooth: Mapping[str, tuple[list[float | None], tuple[float, ...]]],
) -> list[Any]:
    shown = series or SeriesView(run="", attempt="", metric="", bucket=1, step=(), value=())
    return list(
        figures.extension(
            shown,
            enveloped=metric in pulse.enveloped,
            firing=firing,
            last_step=last_step,
            scale=Scale.read(pulse.scales.get(metric)),
            smooth=smooth.get(metric, ([], ()))[0],
        )
    )
