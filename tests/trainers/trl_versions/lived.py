"""Runs a story's script in an environment and reads the JSON line that it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOUSE = Path(__file__).parents[3]
TIMEOUT_S = 300.0
CURRENT = "current"
"""The TRL of the development environment."""


def lived(
    environment: Callable[[str], Path], name: str, module: str, *arguments: str, folder: Path
) -> dict[str, Any]:
    """``name`` of the environment, ``module`` of this package; offline, with its journal in ``folder``."""
    python = Path(sys.executable) if name == CURRENT else environment(name)
    own = {
        "RLVITALS_MODE": "offline",
        "RLVITALS_DIR": str(folder / "spool"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    still = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "ACCELERATE_USE_CPU": "true"}
    done = subprocess.run(
        [str(python), "-m", f"{__package__}.{module}", *arguments, str(folder)],
        cwd=HOUSE,
        env={**os.environ, **own, **still, "PYTHONPATH": str(HOUSE)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
