"""The table of runs without its rows, which the browser draws and keeps fresh one by one (assets/runs.js)."""

from __future__ import annotations

import json
from typing import Any

from dash import dcc, html

from rlvitals_dashboard.components import Component, aria, data
from rlvitals_dashboard.language import phrase, t

HEADS = {
    "light": phrase("Health"),
    "name": phrase("Run"),
    "project": phrase("Project"),
    "framework": phrase("Trainer"),
    "step": phrase("Step"),
    "rate": phrase("Steps/min"),
    "kl_coef": phrase("KL coef."),
    "gpu_hours": phrase("GPU-hours"),
    "firing": phrase("Alerts"),
    "owner": phrase("Owner, labels"),
    "seen": phrase("Last seen"),
}
"""By the column that orders the runs by it."""
NUMBERS = ("step", "rate", "kl_coef", "gpu_hours")
WORDS = {
    "choose": phrase("Choose {name}"),
    "none": phrase("none"),
    "missing": phrase("missing"),
    "no_ranks": phrase("The trainer does not tell its number of ranks"),
    "no_kl": phrase("The trainer told no KL coefficient"),
    "nobody": phrase("nobody"),
    "more": phrase("+{count}"),
    "archived": phrase("Archived"),
    "one_run": phrase("{count} run"),
    "many_runs": phrase("{count} runs"),
    "one_alert": phrase("{count} alert firing"),
    "many_alerts": phrase("{count} alerts firing"),
}
"""What the browser says in a row; its values take the places of those in braces."""


def runs_table(rows: dict[str, Any]) -> Component:
    """``rows`` as `runs_beat` tells them."""
    heads = [html.Th(_choose_all(), className="pick", scope="col"), *(_head(by) for by in HEADS)]
    words = data(words=json.dumps({name: t(said) for name, said in WORDS.items()}))
    table = html.Table(
        [html.Caption(t("Runs"), className="unseen"), html.Thead(html.Tr(heads))], className="runs-table"
    )
    return html.Div(
        [
            dcc.Store(id="runs-rows", data=rows),
            html.Div(table, id="runs-list", tabIndex=0, role="region", **aria(label=t("Runs")), **words),
        ]
    )


def _choose_all() -> Component:
    label = t("Choose all runs that are shown")
    return html.Button("☐", id="runs-all", className="pick-all", title=label, **aria(label=label, pressed="false"))


def _head(by: str) -> Component:
    """A button that orders by it; the browser says which way."""
    words = html.Button([t(HEADS[by]), html.Span(className="way", **aria(hidden="true"))], **data(sort=by))
    return html.Th(words, scope="col", className=f"of-{by}{' numeric' if by in NUMBERS else ''}")
