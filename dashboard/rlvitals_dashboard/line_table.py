"""A table of lines, as wide as it needs: it scrolls within itself, by keyboard too; a phone shows cards."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html

from rlvitals_dashboard.components import Component, aria


def line_table(label: str, names: Sequence[str | Component], rows: Sequence[Component]) -> Component:
    """``label`` is what a reader calls it, ``names`` are the columns' heads, ``rows`` come as ``html.Tr``."""
    head = html.Thead(html.Tr([html.Th(name, scope="col") for name in names]))
    return html.Div(
        html.Table([head, html.Tbody([_named(row, names) for row in rows])], className="lines"),
        className="scroll",
        tabIndex=0,
        role="region",
        **aria(label=label),
    )


def _named(row: Component, names: Sequence[str | Component]) -> Component:
    """Each cell but the first, which is the card's title, knows its column's name, for where there is no head;
    what says that there is nothing is left out there."""
    for cell, name in list(zip(row.children, names, strict=False))[1:]:
        if isinstance(name, str):
            setattr(cell, "data-column", name)
        if cell.children == "–":
            cell.className = f"{getattr(cell, 'className', '')} none".strip()
    return row
