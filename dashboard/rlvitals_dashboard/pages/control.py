"""What waits for a decision on any run, what a run can be asked for, and what became of it all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from dash import Dash, Input, Output, State, dcc, html

from rlvitals.contract.alert import Alert
from rlvitals.contract.command import CommandState
from rlvitals.contract.view import CommandView, RunState, RunView
from rlvitals_dashboard import nav
from rlvitals_dashboard.api import Api, ApiError, NotFound
from rlvitals_dashboard.command_list import command_list
from rlvitals_dashboard.command_panel import decision, own_commands, steered_by
from rlvitals_dashboard.components import Component, notice, panel
from rlvitals_dashboard.deeds import verdict_place
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import fingerprint
from rlvitals_dashboard.words import plural

_OVER = (RunState.FINISHED, RunState.FAILED, RunState.STOPPED)
_UNDER_WAY = (CommandState.PENDING, CommandState.DELIVERED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """``grounds`` are the alerts of the proposals by id."""

    runs: Mapping[str, RunView]
    commands: Sequence[CommandView]
    grounds: Mapping[str, Alert]

    @classmethod
    async def take(cls, api: Api) -> Snapshot:
        known, commands = await asyncio.gather(api.runs(full=True), api.commands())
        runs = {run.id: run for run in known}
        waiting = sorted({c.run for c in commands if c.state is CommandState.PROPOSED})
        unseen = [run for run in waiting if run not in runs]
        runs |= {run.id: run for run in await asyncio.gather(*map(api.run, unseen))}
        alerts = await asyncio.gather(*map(api.alerts, waiting))
        return cls(runs=runs, commands=commands, grounds={a.id: a for some in alerts for a in some})

    @property
    def proposed(self) -> list[CommandView]:
        """Those that expire first come first."""
        waiting = [c for c in self.commands if c.state is CommandState.PROPOSED and c.run in self.runs]
        return sorted(waiting, key=lambda c: c.expires_at)

    def blocks(self, prefix: str) -> dict[str, Block]:
        past = [c for c in self.commands if c.state is not CommandState.PROPOSED]
        return {
            "summary": Block(stamp=fingerprint(self._counts()), make=self._summary),
            "decisions": Block(stamp=fingerprint(self.proposed), make=lambda: self._decisions(prefix)),
            "actions": Block(
                stamp=fingerprint(past),
                make=lambda: panel(t("Past actions"), command_list(past, prefix, name_run=True)),
            ),
        }

    def _counts(self) -> tuple[int, int]:
        return len(self.proposed), sum(c.state in _UNDER_WAY for c in self.commands)

    def _summary(self) -> str:
        waiting, under_way = self._counts()
        decide = (
            t("{proposals} to decide", proposals=plural(waiting, "proposal"))
            if waiting
            else t("nothing to decide")
        )
        return t("{decide}, {under_way} under way", decide=decide, under_way=under_way) if under_way else decide

    def _decisions(self, prefix: str) -> Component:
        if not self.proposed:
            return panel(
                t("Waits for your decision"), html.P(t("Nothing waits for a decision."), className="quiet")
            )
        cards = [
            decision(
                c,
                self.runs[c.run],
                alert=self.grounds.get(c.alert_id),
                href=f"{prefix}run/{quote(c.run, safe='')}",
            )
            for c in self.proposed
        ]
        return panel(t("Waits for your decision"), cards, key="decisions")


async def layout(api: Api, prefix: str, query: Query) -> Component:
    blocks, runs = await asyncio.gather(_heart(prefix).draw(api, query), api.runs(full=True))
    return html.Main(
        [
            html.Div([html.H1(t("Control")), html.P(blocks["summary"])], className="page-head"),
            nav.tabs(prefix, "control"),
            html.Div(
                [
                    html.Div([blocks["decisions"], blocks["actions"]], className="main"),
                    html.Aside(_own(runs, query.get("run", ""))),
                ],
                className="columns",
            ),
            verdict_place(),
            blocks["heart"],
        ],
        className="page control",
    )


def _own(runs: Sequence[RunView], chosen: str) -> Component:
    """A person's own command: first whose, then what."""
    live = [run for run in runs if run.state not in _OVER]
    if not live:
        return panel(t("Ask a run"), html.P(t("No run is going on."), className="quiet"))
    first = chosen if chosen in {run.id for run in live} else live[0].id if len(live) == 1 else ""
    field = dcc.Input(id="own-run", list="own-runs", value=first, placeholder=t("Which run?"), debounce=0.3)
    names = [html.Option(f"{run.name or run.id} ({run.project})"[:120], value=run.id) for run in live]
    known = html.Datalist(names, id="own-runs")
    return panel(
        t("Ask a run"), [html.Label([t("Run"), field], className="whose-run"), known, html.Div(id="own-commands")]
    )


def register(app: Dash, api: Api, prefix: str) -> None:
    _heart(prefix).register(app, api)

    @app.callback(Output("own-commands", "children"), Input("own-run", "value"), State("own-run", "id"))
    async def offer(run: str | None, _id: str) -> Component:
        if not run:
            return html.P(t("Choose a run to see what it can be asked for."), className="quiet")
        try:
            known, steered = await asyncio.gather(api.run(run), api.steered(run))
            return [*own_commands(known), steered_by(steered)]
        except NotFound:
            return html.P(t("There is no such run."), className="quiet")
        except ApiError as error:
            return notice(error.title, error.detail, tone="critical")


def _heart(prefix: str) -> Heart:
    async def look(api: Api, _query: Query) -> Mapping[str, Block]:
        return (await Snapshot.take(api)).blocks(prefix)

    return Heart(key="control", blocks=("summary", "decisions", "actions"), look=look)
