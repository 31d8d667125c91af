from __future__ import annotations

from pathlib import Path

from rlvitals.retention import Held, Retention, choose, held, tidy
from rlvitals.spool import Acked, Lock, Segment, segment_path, segments, write_acked

BOUNDS = Retention(kept_bytes=250, kept_age_s=100.0, spool_bytes=350)


def segment(first_seq: int, modified_s: float = 0.0, size: int = 100) -> Segment:
    return Segment(path=Path(str(first_seq)), first_seq=first_seq, size=size, modified_s=modified_s)


def test_a_segment_is_acknowledged_once_its_last_record_is() -> None:
    kept = [segment(1), segment(11), segment(21)]
    assert [h.acked for h in held(kept, 9, complete=False)] == [False, False]
    assert [h.acked for h in held(kept, 10, complete=False)] == [True, False]
    assert [h.acked for h in held(kept, 99, complete=True)] == [True, True, True]


def test_only_records_that_nobody_took_count_as_lost() -> None:
    kept = [segment(1), segment(11), segment(21)]
    assert [h.records for h in held(kept, 4, complete=False)] == [6, 10]


def test_acknowledged_segments_go_by_age_and_by_size_oldest_first() -> None:
    some = [Held(segment=segment(i, modified_s=i), acked=True, records=0) for i in (3, 1, 2, 4)]
    assert [h.segment.first_seq for h in choose(some, BOUNDS, now_s=50.0)] == [1, 2]
    assert [h.segment.first_seq for h in choose(some, BOUNDS, now_s=103.5)] == [1, 2, 3]


def test_what_nobody_took_goes_only_when_the_spool_is_full() -> None:
    some = [Held(segment=segment(i, modified_s=i), acked=False, records=10) for i in (1, 2, 3, 4)]
    assert [h.segment.first_seq for h in choose(some, BOUNDS, now_s=1e9)] == [1]
    assert choose(some[:3], BOUNDS, now_s=1e9) == []


def test_a_living_writers_journal_is_not_touched_and_a_dead_ones_folder_goes_at_last(tmp_path: Path) -> None:
    for attempt in ("dead", "living"):
        folder = tmp_path / "r" / attempt
        folder.mkdir(parents=True)
        segment_path(folder, 1).write_bytes(b"x" * 100)
        write_acked(folder, Acked(stored_through=5, complete=True))
    lock = Lock.take(tmp_path / "r" / "living")
    assert lock is not None
    nothing = Retention(kept_bytes=0, kept_age_s=0.0, spool_bytes=0)
    assert tidy(tmp_path, [], nothing, 1e12) == 0
    assert segments(tmp_path / "r" / "dead") == []
    assert len(segments(tmp_path / "r" / "living")) == 1
    tidy(tmp_path, [], nothing, 1e12)
    assert not (tmp_path / "r" / "dead").exists()
    lock.release()
