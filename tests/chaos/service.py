"""Processes of the service, each forked off one that has imported everything: a start costs no second of a core.

``python -m tests.chaos.service`` reads a line of JSON for each process to be started and answers with its number.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

CLONE_NEWNET = 0x40000000


class Nursery:
    """The parent of all processes of the service; its children live on their own and are killed on their own."""

    def __init__(self) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "tests.chaos.service"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True)

    def start(
        self, role: str, at: tuple[str, int], skew_s: float, env: dict[str, str], log: Path, namespace: str
    ) -> int:
        """The number of the new process, whose clock is wrong by ``skew_s``; ``namespace``: path, "" for ours."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        told = {"role": role, "at": at, "skew_s": skew_s, "env": env, "log": str(log), "namespace": namespace}
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


def main() -> int:
    import rlvitals_dashboard.serve  # noqa: F401 - before the first fork

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        told = json.loads(line)
        number = os.fork()
        if number == 0:
            _become(told["env"], told["log"])
            _enter(told["namespace"])
            return serve_skewed(told["role"], told["at"], told["skew_s"])
        print(number, flush=True)
    return 0


def _become(env: dict[str, str], log: str) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.update(env)
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, descriptor), (2, descriptor)):
        os.dup2(source, target)


def _enter(namespace: str) -> None:
    if not namespace:
        return
    descriptor = os.open(namespace, os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "cannot enter the network namespace", namespace)
    os.close(descriptor)


def serve_skewed(role: str, at: tuple[str, int], skew_s: float) -> int:
    """`rlvitals serve`, but for the clock."""
    from rlvitals_dashboard import serve as real
    from rlvitals_monitor.api.deps import utc_now

    skew, create = timedelta(seconds=skew_s), real.create_service

    def create_skewed(*given: object, **named: object) -> object:
        app = create(*given, **named)  # type: ignore[arg-type]
        app.dependency_overrides[utc_now] = lambda: datetime.now(timezone.utc) + skew
        return app

    real.create_service = create_skewed  # type: ignore[assignment]
    return real.main(["--role", role, "--host", at[0], "--port", str(at[1])])


if __name__ == "__main__":
    sys.exit(main())
