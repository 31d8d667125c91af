"""A virtual environment for each peer, made once and kept under ``.cache/peers``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "peers"
VERSIONS = {"rlwatch": "0.5.1", "rldoctor": "0.2.0", "rlprobe": "0.1.0"}
PIP_S = 900.0


def python_of(peer: str) -> Path:
    """The interpreter that has it. Raises RuntimeError with pip's last words."""
    return environment(f"{peer}-{VERSIONS[peer]}", [f"{peer}=={VERSIONS[peer]}"])


def environment(name: str, requirements: Sequence[str]) -> Path:
    """The interpreter of the environment called so, made where it is not there or was of others."""
    folder = CACHE / name
    python, made, of = folder / "bin" / "python", folder / ".made", "\n".join(requirements)
    if not made.exists() or made.read_text() != of:
        print(f"· making an environment with {', '.join(requirements)}", flush=True)
        _call([sys.executable, "-m", "venv", "--clear", str(folder)])
        _call([str(python), "-m", "pip", "install", "--quiet", *requirements])
        made.write_text(of)
    return python


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {(done.stderr or done.stdout)[-2000:]}")
