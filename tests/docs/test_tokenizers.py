"""docs/tokenizers.md holds what was measured, each table in its place."""

from __future__ import annotations

import re

import pytest

from benchmarks.exactness import PAGE, between_markers
from benchmarks.sentences import HEALTHY, SCRIPTS


def block(name: str) -> list[str]:
    found = re.search(rf"<!-- {name}: .*? -->\n(.*?)<!-- end of {name} -->", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    return found[1].splitlines()


def test_no_count_disagrees_with_the_tokenizers_own_decode() -> None:
    rows = [line for line in block("exactness")[2:] if line]
    assert len(rows) >= 5
    assert all(row.endswith("| **0** |") for row in rows)


def test_base_rates_are_told_for_twenty_scripts_and_more() -> None:
    assert len(SCRIPTS) >= 20
    told = [line.split("|")[1].strip() for line in block("base rates")[2:]]
    assert told[:-1] == list(HEALTHY)


def test_the_range_that_is_taken_for_bytes_is_shown_to_hold_none() -> None:
    assert any("0 byte pieces" in line for line in block("census"))


def test_a_table_is_put_between_its_markers_and_nowhere_else() -> None:
    page = "a\n<!-- x: by hand -->\nold\n<!-- end of x -->\nb\n"
    assert between_markers(page, "x", "new\n") == page.replace("old", "new")
    with pytest.raises(ValueError, match="one place for 'y'"):
        between_markers(page, "y", "new\n")
