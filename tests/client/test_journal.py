from __future__ import annotations

import errno
import math
import os
import stat
import struct
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.contract import codec
from rlvitals.contract.report import Event, EventKind, Extreme, RunInfo, StepReport
from rlvitals.follow import Follower
from rlvitals.journal import Journal, Writer
from rlvitals.names import NAME_CHARS_MAX
from rlvitals.record import Kind
from rlvitals.spool import segments
from tests.client.disks import remount, tmpfs

RUN = RunInfo(id="r")


def journal_in(folder: Path, **options: Any) -> Journal:
    return Journal(folder, Writer(run=RUN, attempt="a1"), **options)


def read_all(folder: Path) -> list[Any]:
    follower = Follower(folder)
    found = [item.record for item in follower.read(1_000_000)]
    follower.close()
    return found


def event_payload(seq: int) -> bytes:
    return codec.dumps(Event(seq=seq, time_s=1.0, kind=EventKind.NOTE))


def test_a_step_is_on_disk_when_step_returns(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "j")
    journal.step(7, 12.5, {"a": 1.0, "b": 2})
    assert read_all(tmp_path / "j") == [StepReport(seq=1, step=7, time_s=12.5, values={"a": 1.0, "b": 2.0})]


_VALUES = st.dictionaries(
    st.text(min_size=1, max_size=12), st.floats(allow_nan=True, allow_infinity=True), max_size=12
)


@given(st.lists(_VALUES, min_size=1, max_size=8))
def test_nan_infinities_and_missing_names_survive_the_journal(steps: list[dict[str, float]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        journal = journal_in(Path(folder) / "j", own=("rlvitals.errors",))
        for number, values in enumerate(steps):
            journal.step(number, 0.0, values, (0.0,))
        journal.close()
        found = read_all(Path(folder) / "j")
    for values, report in zip(steps, found, strict=True):
        got = dict(report.values)
        assert got.pop("rlvitals.errors") == 0.0
        assert got.keys() == values.keys()
        for name, value in values.items():
            assert got[name] == value or (math.isnan(got[name]) and math.isnan(value))
            assert math.copysign(1, got[name]) == math.copysign(1, value) or math.isnan(value)


def test_names_may_change_from_step_to_step_and_their_order_too(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "j")
    sent = [{"a": 1.0, "b": 2.0}, {"b": 3.0, "a": 4.0}, {"c": 5.0}, {"c": 6.0, "a": 7.0, "d": 8.0}, {}]
    for number, values in enumerate(sent):
        journal.step(number, 0.0, values)
    assert [dict(r.values) for r in read_all(tmp_path / "j")] == sent


def test_missing_and_extremes_stay_with_their_step(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "j")
    worst = Extreme(value=math.inf, token_id=0, position=None, sample=3, masked=False, token="\ufffd")
    journal.step(
        1, 0.0, {"a": 1.0}, missing={"ratio.max": "old log-probs are not computed"}, extremes={"x": worst}
    )
    journal.step(2, 0.0, {"a": 2.0})
    first, second = read_all(tmp_path / "j")
    assert first.missing == {"ratio.max": "old log-probs are not computed"}
    assert first.extremes == {"x": worst}
    assert (second.missing, second.extremes) == ({}, {})
    assert [first.seq, second.seq] == [1, 2]


def test_one_report_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = journal_in(tmp_path / "j")
    journal.step(0, 0.0, {"a": 1.0})
    writes: list[int] = []
    write = os.write

    def counted(fd: int, data: bytes) -> int:
        writes.append(len(data))
        return write(fd, data)

    monkeypatch.setattr(os, "write", counted)
    journal.step(1, 0.0, {"a": 1.0, "new": 2.0}, missing={"m": "why"}, extremes={"e": Extreme(value=1.0)})
    assert len(writes) == 1


def test_files_are_private(tmp_path: Path) -> None:
    journal_in(tmp_path / "spool" / "r" / "a1").step(0, 0.0, {"a": 1.0})
    folder = tmp_path / "spool" / "r" / "a1"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_each_segment_can_be_read_without_the_ones_before_it(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "j", segment_bytes=400)
    for step in range(30):
        journal.step(step, 0.0, {"a": float(step), "b": 1.0})
    kept = segments(tmp_path / "j")
    assert len(kept) > 3
    for segment in kept[:-1]:
        segment.path.unlink()
    assert [r.step for r in read_all(tmp_path / "j")] == list(range(kept[-1].first_seq - 1, 30))


def test_a_torn_last_record_is_skipped_and_counted(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "j")
    for step in range(3):
        journal.step(step, 0.0, {"a": 1.0})
    journal.close()
    path = segments(tmp_path / "j")[0].path
    os.truncate(path, path.stat().st_size - 5)
    follower = Follower(tmp_path / "j")
    assert [i.record.step for i in follower.read(10) if isinstance(i.record, StepReport)] == [0, 1]
    assert (follower.torn, follower.corrupt) == (1, 0)


def test_a_damaged_record_in_the_middle_is_skipped_and_counted(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "j")
    for step in range(5):
        journal.step(step, 0.0, {"a": float(step)})
    path = segments(tmp_path / "j")[0].path
    data = bytearray(path.read_bytes())
    data[-2 * (len(data) // 10)] ^= 0xFF
    path.write_bytes(bytes(data))
    follower = Follower(tmp_path / "j", live=lambda: True)
    steps = [i.record.step for i in follower.read(10) if isinstance(i.record, StepReport)]
    assert len(steps) == 4
    assert steps[-1] == 4
    assert follower.corrupt == 1


def test_two_threads_never_share_a_seq_and_lose_nothing(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "j", segment_bytes=20_000)
    start = threading.Barrier(2)

    def report(name: str) -> None:
        start.wait()
        for step in range(500):
            journal.step(step, 0.0, {name: float(step)})

    threads = [threading.Thread(target=report, args=(name,)) for name in ("x", "y")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = read_all(tmp_path / "j")
    assert [r.seq for r in found] == list(range(1, 1001))
    for name in ("x", "y"):
        assert [r.values[name] for r in found if name in r.values] == [float(s) for s in range(500)]


def test_a_report_from_a_signal_handler_in_the_middle_of_a_write_comes_after_it(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "j")

    def interrupted(seq: int) -> bytes:
        journal.step(9, 0.0, {"late": 1.0})
        return event_payload(seq)

    journal.append(Kind.EVENT, interrupted)
    found = read_all(tmp_path / "j")
    assert [type(r) for r in found] == [Event, StepReport]
    assert [r.seq for r in found] == [1, 2]


def test_a_name_that_cannot_be_one_costs_that_value_only(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "j")
    bad: dict[Any, float] = {"a": 1.0, 5: 2.0, "x" * (NAME_CHARS_MAX + 1): 3.0}
    journal.step(0, 0.0, bad)
    assert dict(read_all(tmp_path / "j")[0].values) == {"a": 1.0}
    assert journal.drops.reasons["name"] == 2


def fail_writes(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(fd: int, data: bytes) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "write", refuse)


def test_memory_takes_over_while_the_disk_fails_and_the_disk_gets_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = journal_in(tmp_path / "j")
    journal.step(0, 0.0, {"a": 0.0})
    follower = Follower(tmp_path / "j", live=lambda: True, memory=journal.memory_after)
    with monkeypatch.context() as patched:
        fail_writes(patched, errno.ENOSPC)
        for step in range(1, 4):
            journal.step(step, 0.0, {"a": float(step), f"new{step}": 1.0})
        journal.recover()
        assert not journal.well
        assert [i.seq for i in follower.read(3)] == [1, 2, 3]
    journal.recover()
    journal.step(4, 0.0, {"a": 4.0})
    assert [i.seq for i in follower.read(10)] == [4, 5]
    assert [dict(r.values)["a"] for r in read_all(tmp_path / "j")] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert journal.well
    assert journal.drops.total == 0


def test_the_memory_queue_is_bounded_and_drops_the_oldest_with_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = journal_in(tmp_path / "j", memory_bytes=2000)
    fail_writes(monkeypatch, errno.EIO)
    for step in range(100):
        journal.step(step, 0.0, {"a": 1.0})
    follower = Follower(tmp_path / "j", memory=journal.memory_after)
    kept = [i.seq for i in follower.read(1000)]
    assert kept == list(range(101 - len(kept), 101))
    assert journal.drops.reasons["memory full"] == 100 - len(kept)


def test_a_really_full_disk_is_survived_and_recovers_when_there_is_room(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "small", "64k") as disk:
        journal = journal_in(disk / "r" / "a1")
        for step in range(2000):
            journal.step(step, 0.0, {"a": float(step), "b": 1.0})
        assert not journal.well
        remount(disk, "size=8m")
        journal.recover()
        assert journal.well
        assert journal.drops.total == 0
        assert [r.step for r in read_all(disk / "r" / "a1")] == list(range(2000))
        journal.close()


def test_a_file_in_place_of_the_folder_is_survived(tmp_path: Path) -> None:
    (tmp_path / "j").write_text("not a folder")
    journal = journal_in(tmp_path / "j")
    journal.step(0, 0.0, {"a": 1.0})
    assert not journal.well
    (tmp_path / "j").unlink()
    journal.recover()
    assert [r.step for r in read_all(tmp_path / "j")] == [0]


def test_a_folder_that_vanishes_is_made_anew(tmp_path: Path) -> None:
    import shutil

    journal = journal_in(tmp_path / "j")
    journal.step(0, 0.0, {"a": 0.0})
    follower = Follower(tmp_path / "j", live=lambda: True)
    assert [i.seq for i in follower.read(10)] == [1]
    journal.step(1, 0.0, {"a": 1.0})
    shutil.rmtree(tmp_path / "j")
    journal.recover()
    journal.step(2, 0.0, {"a": 2.0})
    assert [i.seq for i in follower.read(10)] == [2, 3]
    assert [r.step for r in read_all(tmp_path / "j")] == [2]
    follower.close()


def test_a_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    journal = journal_in(tmp_path / "j")
    journal.step(0, 0.0, {"a": 1.0})
    assert not journal.well
    assert list((tmp_path).glob("j/*")) == []


def test_changed_facts_about_the_run_are_journalled(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "j")
    journal.step(0, 0.0, {"a": 1.0})
    journal.describe(RunInfo(id="r", model="qwen"))
    follower = Follower(tmp_path / "j")
    follower.read(10)
    assert follower.assembler.run == RunInfo(id="r", model="qwen")
    assert (follower.assembler.attempt, follower.assembler.writer) == ("a1", "main")


@pytest.mark.parametrize("told", ["facts", "names"])
def test_what_is_told_where_a_segment_has_just_ended_hides_no_record(tmp_path: Path, told: str) -> None:
    """A segment that began with it was called after the record before, which lies in the segment before."""
    journal = journal_in(tmp_path / "j", segment_bytes=300)
    while journal.seq == 0 or journal._fd >= 0:
        journal.step(journal.seq, 0.0, {"a": 1.0})
    last = journal.seq
    if told == "facts":
        journal.describe(RunInfo(id="r", model="qwen"))
    else:
        with pytest.raises(struct.error):
            journal.step(last, 0.0, {"new": 10**400})
    journal.step(last, 0.0, {"a": 1.0})
    for after in range(last + 1):
        follower = Follower(tmp_path / "j", after_seq=after)
        assert [item.seq for item in follower.read(100)] == list(range(after + 1, last + 2))
        assert follower.lost == 0
        follower.close()
