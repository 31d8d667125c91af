"""What a person does with many runs at once: calls of the API for each of them, and one answer for all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import time
from typing import Any, TypeAlias

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, html, set_props
from dash.exceptions import PreventUpdate

from rlvitals.contract.alert import AlertState
from rlvitals.contract.command import CommandKind
from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.components import Component, notice, visible
from rlvitals_dashboard.language import t
from rlvitals_dashboard.said import Said, words_of
from rlvitals_dashboard.silence_panel import HUSH_S
from rlvitals_dashboard.words import plural

CHOSEN_MAX = 1_000
AT_ONCE = 8
"""Calls under way at one time."""
FAULTS_SHOWN = 5

Deed: TypeAlias = Callable[[Api, str, Said], Awaitable[int]]
"""Answers how many of its things were done to the run."""


def register(app: Dash, api: Api) -> None:
    """By way of a store, as `deeds.register` says why."""

    @app.callback(
        Output("verdict", "children", allow_duplicate=True),
        Input("bulk-deed", "data"),
        running=[(Output("verdict-place", "className"), "at-work", "")],
        prevent_initial_call=True,
    )
    async def act(wanted: Mapping[str, Any] | None) -> Component:
        if not wanted:
            raise PreventUpdate
        set_props("done", {"data": time()})
        return await carry_out(api, wanted["deed"], wanted["chosen"], wanted["said"])


def register_browser(register: Any) -> None:
    """The function is in assets/runs.js, which knows what is chosen."""
    register(
        ClientsideFunction("vitalsRuns", "deed"),
        Input({"type": "bulk", "deed": ALL}, "n_clicks"),
        State({"type": "bulk-say", "name": ALL}, "value"),
        State({"type": "bulk-say", "name": ALL}, "id"),
    )


async def carry_out(api: Api, deed: str, chosen: object, said: Said) -> Component:
    """``chosen``: pairs of a run's id and its name, as the browser keeps them."""
    names = read_chosen(chosen)
    if not names:
        return notice(t("Choose runs first."), tone="warning")
    if deed == "labels" and not (words_of(said, "add") or words_of(said, "remove")):
        return notice(t("Which labels?"), t("Type those to add or to remove."), tone="warning")
    gate = asyncio.Semaphore(AT_ONCE)

    async def do(run: str) -> int | ApiError:
        async with gate:
            try:
                return await DEEDS[deed](api, run, said)
            except ApiError as error:
                return error

    answers = await asyncio.gather(*map(do, names))
    return told(deed, [a for a in answers if isinstance(a, int)], _faults(names, answers))


def read_chosen(chosen: object) -> dict[str, str]:
    """By id."""
    rows = chosen if isinstance(chosen, list) else []
    pairs = [row for row in rows if isinstance(row, list) and [type(word) for word in row] == [str, str]]
    return {run: name or run for run, name in pairs[:CHOSEN_MAX]}


def told(deed: str, done: Sequence[int], faults: Sequence[tuple[str, str]]) -> Component:
    """``done`` counts for each run that it was done to; ``faults`` are names and what the service said."""
    what = _SAID[deed](len(done), sum(done)) if done else t("Nothing was done.")
    if not faults:
        return notice(what, tone="good")
    lines = [html.Li([html.B(visible(name, 96)), ": ", *visible(why, 200)]) for name, why in faults[:FAULTS_SHOWN]]
    rest = len(faults) - FAULTS_SHOWN
    more = [html.Li(t("and {count} more", count=rest))] if rest > 0 else []
    refused = t("Refused for {runs}:", runs=plural(len(faults), "run"))
    return notice(what, [refused, html.Ul([*lines, *more])], tone="warning" if done else "critical")


def _faults(names: Mapping[str, str], answers: Sequence[int | ApiError]) -> list[tuple[str, str]]:
    pairs = zip(names.values(), answers, strict=True)
    return [(name, answer.detail or answer.title) for name, answer in pairs if isinstance(answer, ApiError)]


async def _silence(api: Api, run: str, _said: Said) -> int:
    await api.silence({"match": [f"run={run}"], "lasts_s": HUSH_S})
    return 1


async def _acknowledge(api: Api, run: str, _said: Said) -> int:
    fresh = [a for a in await api.alerts(run) if a.state is AlertState.FIRING and not a.acknowledged_by]
    for alert in fresh:
        await api.acknowledge(alert.id)
    return len(fresh)


async def _owner(api: Api, run: str, said: Said) -> int:
    await api.mark_run(run, {"owner": words_of(said, "owner")})
    return 1


async def _labels(api: Api, run: str, said: Said) -> int:
    await api.mark_run(run, {f"{verb}_labels": _words(words_of(said, verb)) for verb in ("add", "remove")})
    return 1


async def _archive(api: Api, run: str, _said: Said) -> int:
    await api.mark_run(run, {"archived": True})
    return 1


async def _unarchive(api: Api, run: str, _said: Said) -> int:
    await api.mark_run(run, {"archived": False})
    return 1


async def _pause(api: Api, run: str, said: Said) -> int:
    await api.ask(run, CommandKind.PAUSE, why=words_of(said, "why"))
    return 1


async def _delete(api: Api, run: str, _said: Said) -> int:
    await api.delete_run(run)
    return 1


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.replace("，", ",").split(",") if word.strip()]


DEEDS: Mapping[str, Deed] = {
    "silence": _silence,
    "acknowledge": _acknowledge,
    "owner": _owner,
    "labels": _labels,
    "archive": _archive,
    "unarchive": _unarchive,
    "pause": _pause,
    "delete": _delete,
}

_SAID: Mapping[str, Callable[[int, int], Any]] = {
    "silence": lambda runs, _: t("{runs} silenced for one hour.", runs=plural(runs, "run")),
    "acknowledge": lambda _, alerts: t("{alerts} acknowledged.", alerts=plural(alerts, "alert")),
    "owner": lambda runs, _: t("{runs} changed.", runs=plural(runs, "run")),
    "labels": lambda runs, _: t("{runs} changed.", runs=plural(runs, "run")),
    "archive": lambda runs, _: t("{runs} archived.", runs=plural(runs, "run")),
    "unarchive": lambda runs, _: t("{runs} taken back.", runs=plural(runs, "run")),
    "pause": lambda runs, _: t("A pause was asked for on {runs}.", runs=plural(runs, "run")),
    "delete": lambda runs, _: t("{runs} deleted.", runs=plural(runs, "run")),
}
