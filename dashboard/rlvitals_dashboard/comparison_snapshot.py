"""What the page that puts runs side by side asks of the service at one moment."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dash import dcc

from rlvitals.contract.comparison import SettingsView
from rlvitals.contract.view import MetricView, RunView
from rlvitals_dashboard.api import Api, NotFound
from rlvitals_dashboard.comparison_blocks import letter_of, run_chips
from rlvitals_dashboard.comparison_settings import settings_panel
from rlvitals_dashboard.comparison_view import View, address
from rlvitals_dashboard.components import Component
from rlvitals_dashboard.heart import Block
from rlvitals_dashboard.live import fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """``known`` by key, None for a run that is not there."""

    view: View
    known: Mapping[str, RunView | None]
    settings: SettingsView | None

    @classmethod
    async def take(cls, api: Api, view: View) -> Snapshot:
        found = await asyncio.gather(*(find_run(api, key) for key in view.runs))
        known = dict(zip(view.runs, found, strict=True))
        there = [key for key, run in known.items() if run is not None]
        settings = await api.compared_settings(there) if there else None
        return cls(view=view, known=known, settings=settings)

    def blocks(self, prefix: str) -> dict[str, Block]:
        def way(**changes: Any) -> str:
            return address(prefix, self.view, **changes)

        there = [(r.id, r.name, r.project, r.state, r.light, r.last_step) for r in self.known.values() if r]
        gone = [key for key, run in self.known.items() if run is None]
        moved = fingerprint([(r.id, r.last_step, len(r.attempts)) for r in self.known.values() if r], gone)
        return {
            "runs": Block(
                stamp=fingerprint(there, gone), make=lambda: run_chips(self.view, self.known, prefix, way)
            ),
            "moved": Block(stamp=moved, make=lambda: dcc.Store(id="compare-moved", data=moved)),
            "settings": Block(stamp=fingerprint(self.settings), make=lambda: self._settings(way)),
        }

    def _settings(self, way: Any) -> Component:
        if self.settings is None:
            return None
        letters = {key.partition("@")[0]: letter_of(self.view, key) for key in reversed(self.view.runs)}
        return settings_panel(self.settings, self.view, letters, way)


async def find_run(api: Api, key: str) -> RunView | None:
    """A run without the asked attempt is not there either."""
    run, _, attempt = key.partition("@")
    try:
        known = await api.run(run)
    except NotFound:
        return None
    return known if not attempt or attempt in {a.id for a in known.attempts} else None


async def read_metrics(api: Api, key: str) -> Sequence[MetricView]:
    """Of the attempt that stands for the run: the newest with a step."""
    run, _, attempt = key.partition("@")
    try:
        if not attempt:
            stepped = [a for a in (await api.run(run)).attempts if a.last_step is not None]
            attempt = max(stepped, key=lambda a: a.ordinal).id if stepped else ""
        return await api.metrics(run, attempt)
    except NotFound:
        return ()
