"""Many runs at once, and what people say of them, as the API tells it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rlvitals.contract.view import RunChoices, RunView
from rlvitals_dashboard.api_wire import TIMEOUT_S, Wire, items, one, segment

PAGE_ITEMS = 200
LISTED_MAX = 1_000
"""The most that the service puts on one page, and one page of the dashboard shows."""


class RunsApi(Wire):
    async def runs(self, limit: int = PAGE_ITEMS, *, full: bool = False) -> tuple[RunView, ...]:
        """The newest; ``full``: with config, capabilities, knobs, notes and attempts."""
        return items(RunView, await self._get("/runs", limit=limit, full=full or None))

    async def run(self, run: str) -> RunView:
        return one(RunView, await self._get(f"/runs/{segment(run)}"))

    async def listed_runs(
        self, wanted: Mapping[str, Any], *, seen_since: datetime | None = None
    ) -> tuple[tuple[RunView, ...], bool]:
        """The first `LISTED_MAX` that fit, and whether there are more. ``wanted`` has the API's own filters."""
        since = seen_since.isoformat() if seen_since else None
        body = await self._get("/runs", **wanted, seen_since=since, limit=LISTED_MAX)
        return items(RunView, body), bool(body.get("next"))

    async def run_choices(self) -> RunChoices:
        return one(RunChoices, await self._get("/facets"))

    async def mark_run(self, run: str, marks: Mapping[str, Any]) -> RunView:
        """``marks`` may have owner, labels, add_labels, remove_labels, notes and archived."""
        return one(RunView, await self._post(f"/runs/{segment(run)}", marks, method="PATCH"))

    async def delete_run(self, run: str) -> None:
        await self._send("DELETE", f"/runs/{segment(run)}", timeout=TIMEOUT_S)
