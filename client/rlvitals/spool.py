"""Where journals live: ``<spool>/<run>/<attempt>/``, private to the user; who owns which; what may be deleted.

``acked.json`` beside the segments says up to which seq the service has stored all. The writer holds a lock on its
folder as long as it lives, so that whoever gets the lock knows that the writer is dead and may upload the rest.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

try:
    import fcntl
except ImportError:  # not on Windows: there a journal counts as its writer's until `rlvitals sync --force`
    fcntl = None  # type: ignore[assignment]

from rlvitals.contract import codec

SEGMENT_SUFFIX = ".seg"
ACKED_FILE = "acked.json"
LOCK_FILE = "lock"
NETWORK_FILE_SYSTEMS = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "lustre",
        "gpfs",
        "beegfs",
        "ceph",
        "fuse.ceph",
        "glusterfs",
        "afs",
        "9p",
    }
    | {"fuse.glusterfs", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.juicefs", "pvfs2", "wekafs", "panfs"}
)


class UnsafeFolder(OSError):
    """The folder belongs to somebody else, or is no folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acked:
    """``epoch`` names the store at ``url`` that said so. ``complete``: the writer is done, all is stored."""

    url: str = ""
    epoch: str = ""
    stored_through: int = 0
    complete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    path: Path
    first_seq: int
    size: int
    modified_s: float


class Lock:
    """An advisory lock on a journal's folder, held until `release` or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, folder: Path) -> Lock | None:
        """None if a living process holds it. Raises OSError where no lock file can be made."""
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        if fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            except OSError:  # a file system without locks: take our chance, resends are harmless
                pass
        return cls(descriptor)

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def has_ended(folder: Path) -> bool:
    """Whether a journal's writer is surely gone; False where locks do not tell."""
    if fcntl is None:
        return False
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def make_private_folder(folder: Path) -> None:
    """Makes the folder (0700, parents too); raises `UnsafeFolder` if it is not the user's own."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_owner(folder)


def check_owner(folder: Path) -> None:
    """Raises `UnsafeFolder` for a folder of another user or one that others may write to."""
    state = os.stat(folder)
    if not stat.S_ISDIR(state.st_mode):
        raise UnsafeFolder(f"{folder} is no folder")
    if hasattr(os, "getuid") and state.st_uid != os.getuid():
        raise UnsafeFolder(f"{folder} belongs to user {state.st_uid}, not to {os.getuid()}")


def journal_folder(spool: Path, run: str, attempt: str) -> Path:
    """Two levels below the spool; names of runs are quoted so that they cannot leave it."""
    return spool / _quoted(run) / _quoted(attempt)


def run_folder(spool: Path, run: str) -> Path:
    return spool / _quoted(run)


def journals(spool: Path) -> Iterator[Path]:
    """All journal folders of a spool that are the user's own, oldest first; a folder without our files is none."""
    found = [p for p in spool.glob("*/*") if p.is_dir() and not p.is_symlink() and _is_ours(p) and _is_journal(p)]
    return iter(sorted(found, key=lambda p: p.stat().st_mtime))


def segments(folder: Path) -> list[Segment]:
    """A journal's segments in order; a folder that is gone has none, and only a plain file is one."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(SEGMENT_SUFFIX) and name[: -len(SEGMENT_SUFFIX)].isdecimal():
                    state = entry.stat(follow_symlinks=False)
                    if not stat.S_ISREG(state.st_mode):
                        continue
                    first = int(name[: -len(SEGMENT_SUFFIX)])
                    found.append(
                        Segment(
                            path=Path(entry.path), first_seq=first, size=state.st_size, modified_s=state.st_mtime
                        )
                    )
    except OSError:
        return []
    return sorted(found, key=lambda s: s.first_seq)


def segment_path(folder: Path, first_seq: int) -> Path:
    return folder / f"{first_seq:016d}{SEGMENT_SUFFIX}"


def read_acked(folder: Path) -> Acked:
    """What was acknowledged; nothing, if the file is missing or damaged (a resend changes nothing)."""
    try:
        return codec.decode(Acked, codec.loads((folder / ACKED_FILE).read_bytes()))
    except (OSError, ValueError):
        return Acked()


def write_acked(folder: Path, acked: Acked) -> None:
    """Replaces the file in one move. Raises OSError."""
    beside = folder / f"{ACKED_FILE}.{os.getpid()}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, codec.dumps(acked))
    finally:
        os.close(descriptor)
    os.replace(beside, folder / ACKED_FILE)


def network_file_system(path: Path, mounts: str) -> str:
    """The type of the file system that ``path`` is on if it is a network's, else "". ``mounts``: /proc/mounts."""
    best, kind = "", ""
    target = str(path)
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind if kind in NETWORK_FILE_SYSTEMS else ""


def _quoted(name: str) -> str:
    safe = quote(name, safe="")
    return "%2E" + safe[1:] if safe.startswith(".") else safe


def _is_journal(folder: Path) -> bool:
    return bool(segments(folder)) or (folder / ACKED_FILE).is_file()


def _is_ours(folder: Path) -> bool:
    try:
        check_owner(folder)
    except OSError:
        return False
    return True
