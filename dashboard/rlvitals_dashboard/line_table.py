"""A table of lines, as wide as it needs: it scrolls within itself, by keyboard too."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html

from rlvitals_dashboard.components import Component, aria


def line_table(label: str, names: Sequence[str | Component], rows: Sequence[Component]) -> Component:
    """``label`` is what a reader calls it, ``names`` are the columns' heads, ``rows`` come as ``html.Tr``."""
    head = html.Thead(html.Tr([html.Th(name, scope="col") for name in names]))
    return html.Div(
        html.Table([head, html.Tbody(list(rows))], className="lines"),
        className="scroll",
        tabIndex=0,
        role="region",
        **aria(label=label),
    )
