"""The audit as people see it: who did what, when, to which run."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from dash import dcc, html

from rlvitals.contract.view import AuditView
from rlvitals_dashboard.audit_words import detail_words, what_words
from rlvitals_dashboard.components import LONGEST_NAME, Component, visible, when
from rlvitals_dashboard.language import t
from rlvitals_dashboard.line_table import line_table


def audit_table(lines: Sequence[AuditView], prefix: str) -> Component:
    """Newest first."""
    if not lines:
        return html.P(t("No line fits."), className="quiet")
    names = (t("When"), t("Who"), t("What"), t("Run"), t("Detail"))
    return line_table(t("Lines of the audit"), names, [_row(line, prefix) for line in lines])


def _row(line: AuditView, prefix: str) -> Component:
    what: Component = html.Span(visible(what_words(line.what), 64))
    if line.command_id:
        what = dcc.Link(what, href=f"{prefix}control/command/{quote(line.command_id, safe='')}")
    run = (
        dcc.Link(visible(line.run, LONGEST_NAME), href=f"{prefix}run/{quote(line.run, safe='')}")
        if line.run
        else "–"
    )
    return html.Tr(
        [
            html.Td(when(line.at)),
            html.Td(visible(line.who, LONGEST_NAME)),
            html.Td(what),
            html.Td(run),
            html.Td(visible(detail_words(line.what, line.detail), 400), className="detail"),
        ]
    )
