"""Public failure logs, where they lie beside the repository: each record is found, none is made up."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rlvitals.formats.log import Log
from rlvitals.formats.row import BadLine, Row

CASES = Path(__file__).resolve().parents[4] / "shared" / "cases"


def test_every_replayable_log_has_as_many_records_as_its_case_says() -> None:
    if not CASES.exists():
        pytest.skip("REAL LOGS NOT READ: ../shared/cases is absent")
    wrong, seen = {}, 0
    for path in sorted(CASES.glob("*/case.yaml")):
        case = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not case.get("replayable"):
            continue
        found = list(Log.of(path.parent / "log.txt").rows())
        counts = sum(isinstance(f, Row) for f in found), sum(isinstance(f, BadLine) for f in found)
        seen += 1
        if counts != (case["log_steps"], 0):
            wrong[path.parent.name] = counts, case["log_steps"]
    assert not wrong
    assert seen > 20
