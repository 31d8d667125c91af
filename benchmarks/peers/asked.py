"""Asks a peer, in its own environment, about runs: a driver script gets them as JSON and answers as JSON."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers.environments import python_of
from benchmarks.peers.words import WORDS
from benchmarks.scoring import Rang

LIMIT_S = 1800.0

PeerStep = tuple[int, int, Mapping[str, float], Mapping[str, float]]
"""Record of the log, step, numbers by the registry's names, the same by the trainer's own."""


class Answer(NamedTuple):
    """What rang, in order, and the names of what the peer had no place for."""

    rang: tuple[Rang, ...]
    left: tuple[str, ...]


def ask(peer: str, runs: Mapping[str, Sequence[PeerStep]]) -> dict[str, Answer]:
    """Raises RuntimeError with the driver's last words."""
    driver = Path(__file__).parent / f"{peer}_driver.py"
    question = json.dumps([{"name": name, "steps": steps} for name, steps in runs.items()])
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [str(python_of(peer)), str(driver)],
            input=question,
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=LIMIT_S,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{peer}: {done.stderr[-2000:]}")
    told = json.loads(done.stdout)
    return {name: _answer(peer, told[name]) for name in runs}


def _answer(peer: str, told: Mapping[str, Any]) -> Answer:
    rang = [Rang(int(line), severity, WORDS[peer][name]) for line, severity, name in told["rang"]]
    return Answer(tuple(sorted(rang, key=lambda one: one.line)), tuple(told["left"]))
