"""DeepSpeed's C++ parts, compiled once and kept in an environment.

torch compiles behind a lock that is a mere file: whoever is killed meanwhile leaves it, and all after him wait for
ever. Locks that are older than a compile takes are therefore removed first.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

COMPILE_S, STALE_S = 1800.0, 300.0


def compiled(python: Path, *builders: str) -> dict[str, str]:
    """The variables by which jobs find them; ``builders`` are classes of ``deepspeed.ops.op_builder.cpu``."""
    folder = python.parents[1] / "extensions"
    env = {
        "TORCH_EXTENSIONS_DIR": str(folder),
        "DS_ACCELERATOR": "cpu",
        "PATH": f"{python.parent}:{os.environ['PATH']}",  # ninja is there
    }
    _remove_locks(folder)
    for builder in builders:
        made = folder / f".{builder}"
        if not made.exists():
            call = f"from deepspeed.ops.op_builder.cpu import {builder}; {builder}().load()"
            subprocess.run([str(python), "-c", call], env={**os.environ, **env}, check=True, timeout=COMPILE_S)
            made.touch()
    return env


def _remove_locks(folder: Path) -> None:
    for lock in folder.glob("*/lock"):
        if time.time() - lock.stat().st_mtime > STALE_S:
            lock.unlink()
