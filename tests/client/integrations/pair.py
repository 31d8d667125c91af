"""Processes as ranks over gloo, each with a spool of its own; what each says last, as JSON."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """What a rank says goes into files: a full pipe would hold it up, and with it all others."""

    process: subprocess.Popen[str]
    out: Path
    err: Path

    def told(self, deadline_s: float) -> dict[str, Any]:
        """Waits for its end; fails with the end of what it said where it failed."""
        self.process.wait(deadline_s)
        assert self.process.returncode == 0, self.err.read_text()[-3000:]
        last: dict[str, Any] = json.loads(self.out.read_text().splitlines()[-1])
        return last

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def run_pair(module: str, folder: Path, *arguments: str, deadline_s: float, **how: Any) -> list[dict[str, Any]]:
    """Runs ``python -m module *arguments`` as ranks 0, 1, …, started as `start_ranks` does."""
    started = start_ranks(module, folder, *arguments, **how)
    try:
        return [rank.told(deadline_s) for rank in started]
    finally:
        for rank in started:
            rank.end()


def start_ranks(
    module: str,
    folder: Path,
    *arguments: str,
    ranks: int = 2,
    python: Path | str = sys.executable,
    env: Mapping[str, str] | None = None,
) -> list[Rank]:
    """The processes, which are the caller's to end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
    common |= {"RLVITALS_MODE": "offline", "RLVITALS_RAISE": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    common |= {"PYTHONFAULTHANDLER": "1", **(env or {})}  # an abort in a library says where
    folder.mkdir(parents=True, exist_ok=True)
    started = []
    for n in range(ranks):
        out, err = folder / f"rank-{n}.out", folder / f"rank-{n}.err"
        own = {"RANK": str(n), "LOCAL_RANK": str(n), "RLVITALS_DIR": str(folder / f"spool-{n}")}
        with out.open("w") as stdout, err.open("w") as stderr:
            process = subprocess.Popen(
                [str(python), "-m", module, *arguments],
                env=common | own,
                stdout=stdout,
                stderr=stderr,
                text=True,
            )
        started.append(Rank(process=process, out=out, err=err))
    return started
