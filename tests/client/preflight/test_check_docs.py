"""docs/check.md lists every check that the code can report, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from rlvitals.preflight.data_findings import CHECKS

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "client" / "rlvitals" / "preflight"
IDS = re.compile(r'"([TDLCV]\d{1,2})"')


def test_the_page_lists_every_check_once_and_no_other() -> None:
    in_code = {found for path in SOURCES.glob("*.py") for found in IDS.findall(path.read_text(encoding="utf-8"))}
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([TDLCV]\d+) \|", page, re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert set(rows) == in_code


def test_the_checks_of_data_are_numbered_without_a_gap() -> None:
    assert [check.check for check in CHECKS] == [f"D{n}" for n in range(1, len(CHECKS) + 1)]
