"""Whatever lies in a journal's folder, the sender reads on: it neither fails nor hands a record out twice."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rlvitals.contract import codec
from rlvitals.contract.report import Event, EventKind, Extreme, Histogram, ReportBatch, RunInfo, Text
from rlvitals.contract.wire import from_wire, to_wire
from rlvitals.follow import CHUNK_BYTES, Follower, Taken
from rlvitals.journal import Journal, Writer
from rlvitals.record import Kind
from rlvitals.spool import ACKED_FILE, Acked, read_acked, segment_path, segments, write_acked
from rlvitals.transport import pack
from tests.fuzz.budget import attack
from tests.fuzz.mutation import damaged

ROUNDS_MAX = 10_000


@pytest.fixture
def written(tmp_path: Path) -> bytes:
    """One segment with a record of each kind."""
    journal = Journal(tmp_path / "good", Writer(run=RunInfo(id="r"), attempt="a"))
    values = {"a": 0.5, "b": math.nan, "c": math.inf, "d": -math.inf}
    for step in range(12):
        extremes = {"a": Extreme(value=math.inf, position=3)} if step % 3 == 0 else None
        journal.step(
            step, 1e9 + step, values | {f"new.{step}": 1.0}, missing={"e": "not asked"}, extremes=extremes
        )
    for record, kind in (
        (lambda seq: Text(seq=seq, step=1, sample=0, completion="\ud800\x00"), Kind.TEXT),
        (lambda seq: Histogram(seq=seq, step=1, metric="a", edges=(0.0, 1.0), counts=(3,)), Kind.HISTOGRAM),
        (lambda seq: Event(seq=seq, kind=EventKind.NOTE, time_s=1e9, payload={"x": 1}), Kind.EVENT),
    ):
        journal.append(kind, lambda seq, record=record: codec.dumps(record(seq)))  # type: ignore[misc]
    journal.close()
    return b"".join(segment.path.read_bytes() for segment in segments(tmp_path / "good"))


def test_a_damaged_journal_is_read_to_its_end_and_what_is_left_can_be_sent(written: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    folder.mkdir()

    def read(body: bytes) -> None:
        for old in folder.iterdir():
            old.unlink()
        half = len(body) // 2
        segment_path(folder, 1).write_bytes(body[:half])
        segment_path(folder, 8).write_bytes(body[half:])
        check_followed(folder)

    assert attack(damaged([written, written * 2, b"", written[: CHUNK_BYTES // 1000]]), read, name="journal") > 0


def check_followed(folder: Path) -> None:
    follower = Follower(folder)
    last = 0
    for _ in range(ROUNDS_MAX):
        found = follower.read(7)
        if not found:
            break
        for item in found:
            assert item.seq > last
            last = item.seq
            if item.record is not None and not isinstance(item.record, Taken):
                check_sendable(item.record)
    else:
        raise AssertionError("the journal has no end")
    follower.close()


def check_sendable(record: object) -> None:
    place = {"StepReport": "steps", "Text": "texts", "Histogram": "histograms", "Event": "events"}
    name = place.get(type(record).__name__, "outcomes")
    batch = ReportBatch(run=RunInfo(id="r"), attempt="a", **{name: (record,)})  # type: ignore[arg-type]
    wire = to_wire(batch)
    pack(wire)
    from_wire(codec.loads(codec.dumps(wire)))


def test_a_damaged_note_of_what_was_acknowledged_means_that_it_is_sent_again(tmp_path: Path) -> None:
    write_acked(tmp_path, Acked(stored_through=5, epoch="e", url="u"))
    good = (tmp_path / ACKED_FILE).read_bytes()

    def read(body: bytes) -> None:
        (tmp_path / ACKED_FILE).write_bytes(body)
        assert isinstance(read_acked(tmp_path).stored_through, int)

    attack(damaged([good, b"{}", b"[]"]), read, name="acknowledged")
