"""The texts that go through the tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

from rlvitals.preflight.data_sample import read_passages
from rlvitals.preflight.passage import Passage

CHAT = {"prompt": [{"role": "user", "content": "q"}], "completion": [{"role": "assistant", "content": "a"}]}


def test_rows_of_turns_and_of_texts_become_passages_with_their_place() -> None:
    assert read_passages([CHAT, {"prompt": "p"}]) == (
        Passage(text="q", role="user", where="row 1 prompt[1]"),
        Passage(text="a", role="assistant", where="row 1 completion[1]"),
        Passage(text="p", role="prompt", where="row 2 prompt"),
    )


def test_a_file_of_lines_gives_line_numbers_and_damaged_lines_give_nothing(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    file.write_bytes(b"not json\n" + json.dumps({"prompt": "p"}).encode() + b"\n\xff\n[1]\n")
    assert read_passages(file) == (Passage(text="p", role="prompt", where="d.jsonl:2 prompt"),)
    assert read_passages([str(file)]) == read_passages(file)


def test_only_the_first_rows_are_taken_and_an_iterator_is_left_alone() -> None:
    assert len(read_passages([{"prompt": "p"}] * 9, rows=4)) == 4
    rows = iter([{"prompt": "p"}])
    assert read_passages(rows) == ()
    assert next(rows) == {"prompt": "p"}


def test_no_data_and_unreadable_data_are_no_passages(tmp_path: Path) -> None:
    assert read_passages(None) == ()
    assert read_passages(tmp_path / "absent.jsonl") == ()
    assert read_passages(7) == ()
