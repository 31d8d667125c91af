"""slime's repository: it is on no package index, and its tests are what a plug-in is to be held against."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.trainers.environments import CACHE

SOURCE = "RLVITALS_SLIME_SOURCE"
REPOSITORY = "https://github.com/THUDM/slime"
CLONE_S = 120.0


def checkout() -> Path:
    """The one named in the environment, else a clone of our own; the test is skipped where there is none."""
    named = os.environ.get(SOURCE)
    if named:
        return Path(named)
    folder = CACHE / "slime-source"
    if not (folder / "slime").is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        command = ["git", "clone", "--quiet", "--depth", "1", REPOSITORY, str(folder)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=CLONE_S, check=False,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        )  # fmt: skip
        if done.returncode:
            pytest.skip(f"NO TEST AGAINST SLIME ITSELF: name a checkout in {SOURCE} ({done.stderr[-200:]})")
    return folder
