"""What one beat of the page of runs says: all that is new at a full look, between two of them only who spoke.

The service derives each run's light anew, which for a thousand runs is work. So a beat reads the runs that were
heard of since the one before, and every `FULL_LOOK_MS` (or as soon as a light changed) all of them; of these only
those go to the browser that it does not show as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from rlvitals.contract.view import RunChoices, RunView
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.api_runs import LISTED_MAX
from rlvitals_dashboard.language import t
from rlvitals_dashboard.runs_row import row_of
from rlvitals_dashboard.runs_view import RunsView
from rlvitals_dashboard.words import plural

OVERLAP = timedelta(seconds=5)
"""A report is judged after it came: what was heard of just now is read once more."""
Told = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the browser says that it shows. ``prints`` of its rows come with a question for a full look only."""

    version: int = 0
    since: str = ""
    full: bool = True
    view: Mapping[str, Any] = field(default_factory=dict)
    prints: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, data: object) -> Shown:
        """Whatever came back; a page that knows nothing is told all."""
        if not isinstance(data, Mapping) or not isinstance(data.get("version"), int):
            return cls()
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        whole = isinstance(known.get("prints", {}), Mapping) and isinstance(known.get("view", {}), Mapping)
        return cls(**known) if whole else cls()

    @property
    def spoke_since(self) -> datetime | None:
        try:
            return None if self.full or not self.since else datetime.fromisoformat(self.since) - OVERLAP
        except ValueError:
            return None


async def look(api: Api, shown: Shown, prefix: str) -> Told:
    """The answer to what is shown: see `full_look` and `rows_since`."""
    view = RunsView.read(shown.view)
    since = shown.spoke_since
    if since is not None:
        found, _ = await api.listed_runs(view.asked(), seen_since=since)
        return rows_since(found, shown.since, prefix)
    choices = await api.run_choices()
    found, more = await api.listed_runs(view.asked())
    return full_look(found, more, choices, view, shown.prints, prefix)


def full_look(
    found: Sequence[RunView],
    more: bool,
    choices: RunChoices,
    view: RunsView,
    prints: Mapping[str, int],
    prefix: str,
) -> Told:
    """``order`` has all that are to be shown, ``rows`` those that are not shown as they are."""
    rows = [row_of(run, prefix) for run in found]
    empty = "" if rows else "unfit" if choices.runs else "none"
    return {
        "full": True,
        "order": [row["id"] for row in rows],
        "rows": [row for row in rows if prints.get(row["id"]) != row["print"]],
        "summary": summary(found, more, choices),
        "empty": empty,
        "view": view.said(),
        "since": _newest(found, ""),
    }


def rows_since(found: Sequence[RunView], since: str, prefix: str) -> Told:
    return {"full": False, "rows": [row_of(run, prefix) for run in found], "since": _newest(found, since)}


def summary(found: Sequence[RunView], more: bool, choices: RunChoices) -> str:
    if not choices.runs:
        return ""
    firing = sum(run.firing for run in found)
    alerts = t("{alerts} firing", alerts=plural(firing, "alert")) if firing else t("no alert firing")
    told = t("{runs}, {alerts}", runs=plural(len(found), "run"), alerts=alerts)
    if more:
        return t("{told}; the first {most} of more are shown", told=told, most=LISTED_MAX)
    put_away = choices.archived if len(found) < choices.runs else 0
    return t("{told}, {count} archived", told=told, count=put_away) if put_away else told


def _newest(found: Sequence[RunView], before: str) -> str:
    """By the service's clock, as all times of runs are."""
    return max([before, *(run.last_seen_at.isoformat() for run in found)])
