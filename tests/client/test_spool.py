from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlvitals.spool import (
    Acked,
    Lock,
    UnsafeFolder,
    check_owner,
    journal_folder,
    journals,
    network_file_system,
    read_acked,
    segment_path,
    segments,
    write_acked,
)

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
fs:/scratch /scratch nfs4 rw 0 0
//nas/share /mnt/my\\040share cifs rw 0 0
/dev/nvme0n1 /scratch/local xfs rw 0 0
none broken
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me/spool", ""),
        ("/scratch/run", "nfs4"),
        ("/scratch", "nfs4"),
        ("/scratchy", ""),
        ("/scratch/local/run", ""),
        ("/mnt/my share/x", "cifs"),
    ],
)
def test_a_network_file_system_is_known_by_the_longest_mount(path: str, kind: str) -> None:
    assert network_file_system(Path(path), MOUNTS) == kind


@pytest.mark.parametrize("run", ["../../etc", ".", "..", "a/b", "run:7", "ünï", ".hidden"])
def test_a_runs_name_cannot_leave_the_spool(tmp_path: Path, run: str) -> None:
    folder = journal_folder(tmp_path, run, "a1")
    assert folder.parent.parent == tmp_path
    assert folder.resolve().is_relative_to(tmp_path.resolve())
    assert ".." not in folder.parts


def test_a_lock_is_held_by_one_process_and_freed_by_its_death(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from rlvitals.spool import Lock\n"
        "lock = Lock.take(Path(sys.argv[1])); print('held' if lock else 'taken', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert Lock.take(tmp_path) is None
        other.kill()
        other.wait()
    mine = Lock.take(tmp_path)
    assert mine is not None
    assert Lock.take(tmp_path) is None
    mine.release()
    assert Lock.take(tmp_path) is not None


def test_the_acknowledged_position_survives_and_damage_means_none(tmp_path: Path) -> None:
    acked = Acked(url="http://x", epoch="e", stored_through=2**60, complete=True)
    write_acked(tmp_path, acked)
    assert read_acked(tmp_path) == acked
    (tmp_path / "acked.json").write_text('{"stored_through": "x"')
    assert read_acked(tmp_path) == Acked()
    assert [p.name for p in tmp_path.iterdir()] == ["acked.json"]


def test_segments_are_listed_by_their_first_seq_and_strangers_left_out(tmp_path: Path) -> None:
    for seq in (100, 9, 1):
        segment_path(tmp_path, seq).write_bytes(b"x")
    (tmp_path / "notes.seg").write_bytes(b"x")
    (tmp_path / "lock").write_bytes(b"x")
    assert [s.first_seq for s in segments(tmp_path)] == [1, 9, 100]
    assert segments(tmp_path / "gone") == []


def test_journals_of_links_and_of_others_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spool" / "r" / "a1").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    for folder in (tmp_path / "spool" / "r" / "a1", tmp_path / "elsewhere"):
        segment_path(folder, 1).write_bytes(b"x")
    (tmp_path / "spool" / "r" / "a2").symlink_to(tmp_path / "elsewhere")
    assert [p.name for p in journals(tmp_path / "spool")] == ["a1"]
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    assert list(journals(tmp_path / "spool")) == []
    with pytest.raises(UnsafeFolder):
        check_owner(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_only_a_plain_file_is_a_segment_so_that_a_pipe_cannot_hold_the_reader(tmp_path: Path) -> None:
    os.mkfifo(segment_path(tmp_path, 1))
    segment_path(tmp_path, 2).mkdir()
    segment_path(tmp_path, 3).symlink_to("/dev/zero")
    segment_path(tmp_path, 4).write_bytes(b"x")
    assert [s.first_seq for s in segments(tmp_path)] == [4]


def test_a_folder_without_our_files_is_no_journal(tmp_path: Path) -> None:
    for name in ("empty", "foreign", "ours", "sent"):
        (tmp_path / "run" / name).mkdir(parents=True)
    (tmp_path / "run" / "foreign" / "lock").touch()
    segment_path(tmp_path / "run" / "ours", 1).write_bytes(b"x")
    write_acked(tmp_path / "run" / "sent", Acked())
    assert {p.name for p in journals(tmp_path)} == {"ours", "sent"}
