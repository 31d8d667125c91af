"""Tables are lines on a phone: each cell says what it is, and what says nothing is not shown there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dash import html

import rlvitals_dashboard.pages as pages
from rlvitals_dashboard.line_table import line_table

LONGEST_PAGE = 150
"""Lines of a page's module; what it shows has modules of its own."""


def cells(table: Any) -> list[Any]:
    body = table.children.children[1]
    return list(body.children[0].children)


def test_a_cell_knows_its_column_and_a_dash_is_left_out_of_a_phones_line() -> None:
    row = html.Tr([html.Td("every run"), html.Td("–"), html.Td("local", className="detail")])
    first, name, who = cells(line_table("Policies", ("For", "Name", "Set by"), [row]))
    assert not hasattr(first, "data-column")
    assert (getattr(name, "data-column"), name.className) == ("Name", "none")
    assert (getattr(who, "data-column"), who.className) == ("Set by", "detail")


def test_a_zero_and_an_empty_cell_are_no_dash() -> None:
    row = html.Tr([html.Td("a"), html.Td("0"), html.Td(None)])
    assert not any(hasattr(cell, "className") for cell in cells(line_table("t", ("A", "B", "C"), [row])))


def test_each_page_is_short() -> None:
    folder = Path(pages.__file__).parent
    lines = {path.name: len(path.read_text().splitlines()) for path in folder.glob("*.py")}
    assert {name: count for name, count in lines.items() if count > LONGEST_PAGE} == {}
