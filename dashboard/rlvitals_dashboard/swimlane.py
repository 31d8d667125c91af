"""The order of onset as a swim-lane: one line a rule, each alert from where it began to hold to its end.

Places are shares of the axis, so that the browser lays it out at any width; words say the same to those who cannot
see it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import quote, urlencode

from dash import dcc, html

from rlvitals.contract.alert import Alert, AlertState
from rlvitals.contract.incident import Axis, IncidentStory, Lane, lanes, onset_of
from rlvitals.contract.view import CommandView, EventView
from rlvitals_dashboard.components import Component, aria, visible
from rlvitals_dashboard.language import t
from rlvitals_dashboard.theme import SEVERITIES

LEAST = 0.006
"""Share of the axis of what is over within a step."""
Way = Callable[[int, int], str]
"""The address of the run's page between two steps."""


def swimlane(story: IncidentStory, way: Way) -> Component:
    axis, onset = story.axis, story.axis.share(story.incident.onset_step)
    rows = [_lane(lane, axis, way) for lane in lanes(story.alerts)]
    applied = [c for c in story.commands if c.step is not None and _is_on(axis, c.step)]
    return html.Div(
        [
            html.Ol(rows, className="lanes"),
            _marks(t("Checkpoints"), [_saved(event, axis) for event in story.checkpoints]),
            _marks(t("Actions"), [_done(command, axis) for command in applied]),
            _axis(story, onset),
        ],
        className="swimlane",
        style={"--onset": f"{onset:.4f}"},
    )


def _axis(story: IncidentStory, onset: float) -> Component:
    """The first alert is named under its line: on that side of it where there is room."""
    first, last = (t("step {step}", step=step) for step in (story.axis.first, story.axis.last))
    words = t("first alert: step {step}", step=story.incident.onset_step)
    return html.Div(
        [
            html.Span(words, className="at-onset late" if onset > 0.5 else "at-onset"),
            html.Div([html.Span(first), html.Span(last)], className="lane-ends"),
        ],
        className="lane-axis",
    )


def _lane(lane: Lane, axis: Axis, way: Way) -> Component:
    look = SEVERITIES[lane.severity]
    room = max(axis.last - axis.first, 1)
    return html.Li(
        [
            dcc.Link(
                [html.Span(look.mark, className="mark", **aria(hidden="true")), html.Code(visible(lane.rule, 80))],
                href=way(lane.onset - room, lane.onset + room),
                className="lane-name",
                title=t("The charts around its onset"),
            ),
            html.Div(
                [piece for alert in lane.alerts for piece in _bar(alert, axis)],
                className="lane-track",
                role="img",
                **aria(label=words_of(lane)),
            ),
        ],
        className=f"lane tone-{look.tone}",
    )


def words_of(lane: Lane) -> str:
    last = lane.alerts[-1]
    if last.state is not AlertState.RESOLVED:
        until = t("goes on")
    else:
        until = t("over") if last.resolved_step is None else t("until step {step}", step=last.resolved_step)
    times = t(", {count} times", count=len(lane.alerts)) if len(lane.alerts) > 1 else ""
    return t(
        "{severity}: {rule} from step {onset}{times}, {until}",
        severity=SEVERITIES[lane.severity].said,
        rule=lane.rule,
        onset=lane.onset,
        times=times,
        until=until,
    )


def _bar(alert: Alert, axis: Axis) -> list[Component]:
    """The time in which it held and did not ring yet is paler."""
    held, fired = axis.share(alert.since_step), axis.share(onset_of(alert))
    goes_on = alert.state is not AlertState.RESOLVED or (alert.resolved_step or 0) >= axis.last
    end = 1.0 if alert.resolved_step is None else axis.share(alert.resolved_step)
    lead = html.Span(className="lane-held", style=_span(held, fired)) if fired > held else None
    start = min(fired, 1 - LEAST)
    place = _span(start, max(end, start + LEAST))
    return [lead, html.Span(className="lane-bar goes-on" if goes_on else "lane-bar", style=place)]


def _span(start: float, end: float) -> dict[str, str]:
    return {"left": f"{start:.2%}", "width": f"{end - start:.2%}"}


def _marks(title: str, marks: Sequence[Component]) -> Component:
    if not marks:
        return None
    track = html.Div(list(marks), className="lane-track")
    return html.Div([html.Span(title, className="lane-name"), track], className="lane lane-marks")


def _saved(event: EventView, axis: Axis) -> Component:
    step = event.step or 0
    return _mark("◇", t("checkpoint at step {step}", step=step), axis.share(step))


def _done(command: CommandView, axis: Axis) -> Component:
    step = command.step or 0
    return _mark("▼", t("{kind} applied at step {step}", kind=command.kind.value, step=step), axis.share(step))


def _mark(sign: str, words: str, share: float) -> Component:
    return html.Span(
        sign, className="lane-mark", style={"left": f"{share:.2%}"}, title=words, role="img", **aria(label=words)
    )


def _is_on(axis: Axis, step: int) -> bool:
    return axis.first <= step <= axis.last


def charts_way(prefix: str, story: IncidentStory) -> Way:
    base = f"{prefix}run/{quote(story.run.id, safe='')}"

    def way(first: int, last: int) -> str:
        view = {"attempt": story.incident.attempt, "from": max(first, 0), "to": last}
        return f"{base}?{urlencode(view)}"

    return way
