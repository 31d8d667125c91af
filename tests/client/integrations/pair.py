"""Two processes as two ranks over gloo, each with a spool of its own; what each says last, as JSON."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any


def run_pair(module: str, folder: Path, *arguments: str, deadline_s: float) -> list[dict[str, Any]]:
    """Runs ``python -m module *arguments`` as ranks 0 and 1; fails with the end of what a failed rank said."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    common |= {"RLVITALS_MODE": "offline", "RLVITALS_RAISE": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    common |= {"PYTHONFAULTHANDLER": "1"}  # an abort in a library says where
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env={**common, "RANK": str(n), "LOCAL_RANK": str(n), "RLVITALS_DIR": str(folder / f"spool-{n}")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(2)
    ]
    told = []
    try:
        for process in processes:
            out, err = process.communicate(timeout=deadline_s)
            assert process.returncode == 0, err[-3000:]
            told.append(json.loads(out.splitlines()[-1]))
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return told
