"""Where the client took hold of the trainer: one line while all is well, every hook and its reason where not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dash import html

from rlvitals.contract.hooks import HookState, HooksView, HookTableView, HookView
from rlvitals.contract.view import EventView
from rlvitals_dashboard.components import LONGEST_NAME, Component, mark, panel, visible, when
from rlvitals_dashboard.language import t, woven
from rlvitals_dashboard.theme import HOOK_STATES, Look
from rlvitals_dashboard.words import plural

WELL = Look(tone="good", mark="●", word="Hooks")
ODD = Look(tone="warning", mark="▲", word="Hooks")
LONGEST_REASON = 400
LONGEST_PATH = 300


def hook_panel(hooks: HooksView) -> Component:
    """Nothing for a client that tells of no hooks; open where something is wrong."""
    if not hooks.tables:
        return None
    line = html.Summary(
        [mark(WELL if hooks.well else ODD), html.Span(visible(hooks.summary, LONGEST_REASON), className="line")]
    )
    advice = html.P([html.B(t("What to do: ")), *visible(hooks.advice, LONGEST_REASON)]) if hooks.advice else None
    several = len(hooks.tables) > 1
    tables = [part for table in hooks.tables for part in _table(table, several=several)]
    body = html.Div([advice, *tables], className="folded")
    return html.Details([line, body], open=not hooks.well, className=f"hooks{'' if hooks.well else ' odd-hooks'}")


def _table(table: HookTableView, *, several: bool) -> Iterator[Component]:
    whose = woven(" as {writer}", writer=visible(table.writer, LONGEST_NAME)) if several else []
    counted = t(", {steps} counted, told ", steps=plural(table.steps, "step")) if table.steps else t(", told ")
    about = [*visible(table.trainer, LONGEST_NAME), *whose, counted, when(table.at)]
    yield html.P(about, className="muted about-hooks")
    yield html.Ul([_row(hook) for hook in table.hooks], className="hook-rows")


def _row(hook: HookView) -> Component:
    look = HOOK_STATES[hook.state]
    if hook.state is HookState.ABSENT and hook.optional:
        look = Look(tone="idle", mark=look.mark, word="Absent, not needed")
    seen = t("seen {times}", times=plural(hook.seen, "time")) if hook.seen else ""
    reason = hook.why and [html.Span(visible(hook.why, LONGEST_REASON), className="why")]
    gives = hook.gives and [
        html.Span(woven("gives {gives}", gives=visible(hook.gives, LONGEST_REASON)), className="muted")
    ]
    return html.Li(
        [
            html.Div(
                [
                    mark(look),
                    html.Strong(visible(hook.hook, LONGEST_NAME)),
                    html.Code(visible(hook.target, 200)),
                    html.Span(seen, className="muted"),
                ]
            ),
            html.Div([*(reason or []), *(gives or [])], className="words"),
        ]
    )


def checkpoint_panel(saved: Sequence[EventView]) -> Component:
    """Newest first, with the step and the path; nothing where none was told of."""
    if not saved:
        return None
    return panel(t("Checkpoints"), html.Ol([_checkpoint(event) for event in saved], className="checkpoints"))


def _checkpoint(event: EventView) -> Component:
    folder = event.payload.get("folder")
    where = visible(folder, LONGEST_PATH) if isinstance(folder, str) and folder else t("path not told")
    step = t("step not told") if event.step is None else t("step {step}", step=event.step)
    return html.Li(
        [
            html.Div([html.Strong(step), " ", when(event.at)]),
            html.Code(where, className="path") if isinstance(where, list) else html.Span(where, className="muted"),
        ]
    )
