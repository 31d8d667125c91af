"""How a page of several blocks stays fresh: one chain of beats, and only what changed is drawn anew.

A page names its blocks and a function that takes a look at the service. Each `Block` has a stamp: while that stays
the same, the block is left alone, so that what a person is typing into it survives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dash import Dash, Input, Output, State, dcc, html, no_update

from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.components import Component
from rlvitals_dashboard.live import WATCH_MS, Pulse, after_trouble, next_change, prints_place, prints_text

Query: TypeAlias = Mapping[str, str]
"""What the person looks at; the URL says the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    stamp: int
    make: Callable[[], Component]


Look: TypeAlias = Callable[[Api, Query], Awaitable[Mapping[str, Block]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heart:
    """``key`` names the page among its callbacks; ``blocks`` are in the order in which they stand."""

    key: str
    blocks: tuple[str, ...]
    look: Look
    pace_s: float = 0.0
    """How long it rests between two looks, where a look is dear."""

    async def draw(self, api: Api, query: Query) -> dict[str, Component]:
        """Each block in its place, and under ``heart`` what keeps them fresh: all must stand on the page."""
        now = await self.look(api, query)
        drawn = {name: html.Div(now[name].make(), id=self._place(name)) for name in self.blocks}
        prints = {name: block.stamp for name, block in now.items()}
        parts = [
            prints_place(self.key, prints),
            dcc.Store(id={"type": "view", "page": self.key}, data=dict(query)),
            dcc.Store(id={"type": "pulse", "page": self.key}, data=Pulse(prints=prints).data()),
            dcc.Store(id={"type": "beat", "page": self.key}),
            dcc.Interval(id={"type": "watch", "page": self.key}, interval=WATCH_MS),
        ]
        return drawn | {"heart": html.Div(parts, hidden=True)}

    def register(self, app: Dash, api: Api) -> None:
        @app.callback(
            *(Output(self._place(name), "children") for name in (*self.blocks, "prints")),
            Output({"type": "beat", "page": self.key}, "data"),
            Input({"type": "pulse", "page": self.key}, "data"),
            State({"type": "view", "page": self.key}, "data"),
            websocket=True,
            persistent=True,
        )
        async def live(data: object, query: Query | None) -> tuple[Any, ...]:
            pulse = Pulse.read(data) or Pulse()
            try:
                change = await next_change(api, None, pulse.version)
                await asyncio.sleep(self.pace_s)
                now = await self.look(api, query or {})
            except ApiError as error:
                return self._answer({}, pulse.data(trouble=await after_trouble(error)))
            fresh = {name: now[name].make() for name in now if now[name].stamp != pulse.prints.get(name)}
            prints = {name: block.stamp for name, block in now.items()}
            beat = Pulse(version=change.version, prints=prints).data()
            return self._answer(fresh | {"prints": prints_text(prints)}, beat)

    def _answer(self, fresh: Mapping[str, Component], beat: Any) -> tuple[Any, ...]:
        return (*(fresh.get(name, no_update) for name in (*self.blocks, "prints")), beat)

    def _place(self, block: str) -> str:
        return f"{self.key}-{block}"
