"""Nothing that may never end, or never begin, is ever opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import rlvitals
from rlvitals.preflight.file_kind import IrregularFileError, check_regular, read_regular
from rlvitals.preflight.finding import Verdict
from tests.client.preflight.chatml import build


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe.json")
    return tmp_path / "pipe.json"


def test_pipes_and_devices_are_refused_by_name_and_files_and_folders_are_not(pipe: Path) -> None:
    for path, kind in ((pipe, "a pipe"), (Path("/dev/zero"), "a device")):
        with pytest.raises(IrregularFileError, match=kind):
            check_regular(path)
    check_regular(pipe.parent)
    (pipe.parent / "text").write_text("é", encoding="utf-8")
    assert read_regular(pipe.parent / "text") == "é"
    with pytest.raises(FileNotFoundError):
        read_regular(pipe.parent / "absent")


@pytest.mark.parametrize(
    ("part", "check"),
    [("tokenizer", "T1"), ("model", "T1"), ("generation_config", "T7"), ("data", "D1"), ("trainer_config", "C1")],
)
def test_whatever_part_it_is_given_as_it_is_a_finding(pipe: Path, part: str, check: str) -> None:
    given: dict[str, Any] = {"tokenizer": build(), part: pipe}
    fatal = [f for f in rlvitals.preflight(**given).of_check(check) if f.verdict is Verdict.FATAL]
    assert ["a pipe" in f.evidence for f in fatal] == [True]


def test_a_template_in_a_pipe_is_not_waited_for(pipe: Path) -> None:
    assert rlvitals.preflight(tokenizer=build(), chat_template=str(pipe)).findings
