from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlvitals.contract import codec
from rlvitals.contract.report import Event, EventKind, RunInfo, StepReport
from rlvitals.follow import Follower, commands_applied, commands_taken
from rlvitals.journal import Journal, Writer
from rlvitals.record import Kind
from rlvitals.spool import journal_folder, segments


def journal_in(folder: Path, attempt: str = "a1", segment_bytes: int = 10_000) -> Journal:
    return Journal(folder, Writer(run=RunInfo(id="r"), attempt=attempt), segment_bytes=segment_bytes)


def write_steps(journal: Journal, count: int, first: int = 0) -> None:
    for step in range(first, first + count):
        journal.step(step, 0.0, {"a": float(step)})


def test_it_waits_at_the_end_and_goes_on_when_more_is_written(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "j", segment_bytes=300)
    follower = Follower(tmp_path / "j", live=lambda: True)
    assert follower.read(5) == []
    write_steps(journal, 20)
    assert [i.seq for i in follower.read(7)] == list(range(1, 8))
    assert [i.seq for i in follower.read(100)] == list(range(8, 21))
    assert follower.read(5) == []
    write_steps(journal, 2, first=20)
    assert [i.seq for i in follower.read(5)] == [21, 22]


def test_a_backlog_is_read_from_disk_once_however_small_the_bites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_steps(journal_in(tmp_path / "j", segment_bytes=1_000_000), 100)
    looks: list[int] = []
    read = os.pread

    def pread(fd: int, count: int, offset: int) -> bytes:
        looks.append(offset)
        return read(fd, count, offset)

    monkeypatch.setattr(os, "pread", pread)
    follower = Follower(tmp_path / "j", live=lambda: True)
    assert [i.seq for _ in range(10) for i in follower.read(10)] == list(range(1, 101))
    assert len(looks) == 1


@pytest.mark.parametrize("bite", [1, 7, 100])
def test_a_damaged_record_is_counted_once_however_small_the_bites(tmp_path: Path, bite: int) -> None:
    write_steps(journal_in(tmp_path / "j", segment_bytes=1_000_000), 30)
    (segment,) = segments(tmp_path / "j")
    data = bytearray(segment.path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    segment.path.write_bytes(data)
    follower = Follower(tmp_path / "j")
    found = [i.seq for _ in range(100 // bite + 1) for i in follower.read(bite)]
    (lost,) = set(range(1, 31)) - set(found)
    assert found == [seq for seq in range(1, 31) if seq != lost]
    assert (follower.corrupt, follower.torn) == (1, 0)


def test_it_starts_just_after_a_given_seq_even_inside_a_segment(tmp_path: Path) -> None:
    write_steps(journal_in(tmp_path / "j", segment_bytes=300), 20)
    assert len(segments(tmp_path / "j")) > 2
    for seq in range(21):
        follower = Follower(tmp_path / "j", after_seq=seq)
        assert [i.seq for i in follower.read(100)] == list(range(seq + 1, 21))
        assert follower.lost == 0


def test_it_can_go_back(tmp_path: Path) -> None:
    write_steps(journal_in(tmp_path / "j", segment_bytes=300), 20)
    follower = Follower(tmp_path / "j")
    follower.read(100)
    follower.seek(12)
    assert [i.seq for i in follower.read(100)] == list(range(13, 21))


def test_deleted_segments_are_counted_as_lost_records(tmp_path: Path) -> None:
    write_steps(journal_in(tmp_path / "j", segment_bytes=300), 20)
    kept = segments(tmp_path / "j")
    kept[0].path.unlink()
    follower = Follower(tmp_path / "j")
    assert follower.read(100)[0].seq == kept[1].first_seq
    assert follower.lost == kept[1].first_seq - 1


def test_a_record_larger_than_a_chunk_is_read(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "j", segment_bytes=10_000_000)
    big = "x" * 1_500_000
    journal.append(
        Kind.EVENT,
        lambda seq: codec.dumps(Event(seq=seq, time_s=0.0, kind=EventKind.NOTE, payload={"text": big})),
    )
    write_steps(journal, 1)
    first, second = Follower(tmp_path / "j", live=lambda: True).read(10)
    assert isinstance(first.record, Event)
    assert first.record.payload == {"text": big}
    assert isinstance(second.record, StepReport)


def test_a_record_that_says_nonsense_is_counted_and_passed(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "j")
    journal.append(Kind.EVENT, lambda seq: b'{"seq": "x"}')
    journal.append(Kind.STEP, lambda seq: b"short")
    journal.append(Kind.EXTREMES, lambda seq: b"\x00" * 7)
    journal.append(Kind.STEP, lambda seq: b"")
    write_steps(journal, 1)
    follower = Follower(tmp_path / "j")
    assert [type(i.record) for i in follower.read(10)][-1] is StepReport
    assert follower.assembler.corrupt == 3


def test_a_value_whose_name_was_lost_is_counted_and_the_others_kept(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "j")
    journal.step(0, 0.0, {"a": 1.0})
    journal.step(1, 0.0, {"a": 2.0, "b": 3.0})
    path = segments(tmp_path / "j")[0].path
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"names":["b"]', b'"nam_s":["b"]'))
    follower = Follower(tmp_path / "j")
    last = follower.read(10)[-1].record
    assert isinstance(last, StepReport)
    assert dict(last.values) == {"a": 2.0}
    assert (follower.corrupt, follower.assembler.corrupt) == (1, 1)


def test_commands_of_all_attempts_of_a_run_are_known(tmp_path: Path) -> None:
    for attempt, run in (("a1", "r"), ("a2", "r"), ("a3", "other")):
        journal = Journal(journal_folder(tmp_path, run, attempt), Writer(run=RunInfo(id=run), attempt=attempt))
        taken = {
            "command": {"id": f"c-{attempt}", "kind": "pause", "expires_at": "2030-01-01T00:00:00Z"},
            "step": 1,
        }
        journal.append(Kind.COMMAND, lambda seq, taken=taken: codec.dumps({"seq": seq, **taken}))  # type: ignore[misc]
        if attempt == "a2":
            done = {"command_id": "c-a2", "state": "applied"}
            journal.append(Kind.OUTCOME, lambda seq, done=done: codec.dumps({"seq": seq, **done}))  # type: ignore[misc]
        journal.close()
    assert commands_taken(tmp_path, "r") == {"c-a1": False, "c-a2": True}


@pytest.mark.parametrize(
    ("state", "counted"), [("applied", True), ("refused", False), ("expired", False), (None, True)]
)
def test_what_a_process_that_died_may_have_changed_counts(
    tmp_path: Path, state: str | None, counted: bool
) -> None:
    journal = Journal(journal_folder(tmp_path, "r", "a1"), Writer(run=RunInfo(id="r"), attempt="a1"))
    taken = {
        "command": {"id": "c", "kind": "scale_lr", "argument": 0.5, "expires_at": "2030-01-01T00:00:00Z"},
        "step": 7,
    }
    journal.append(Kind.COMMAND, lambda seq: codec.dumps({"seq": seq, **taken}))
    if state is not None:
        journal.append(Kind.OUTCOME, lambda seq: codec.dumps({"seq": seq, "command_id": "c", "state": state}))
    journal.close()
    found = [(made.command.id, made.step) for made in commands_applied(tmp_path, "r")]
    assert found == ([("c", 7)] if counted else [])
