"""One contender on this machine: its environment, its server, and tasks of `driver` in processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.environments import environment
from benchmarks.trackers.contender import Contender, Place, contender

ROOT = Path(__file__).resolve().parents[2]
TASK_S = 150.0
READY_S = 120.0
QUIET = {"DO_NOT_TRACK": "1", "PYTHONWARNINGS": "ignore", "TQDM_DISABLE": "1"}


class Failed(Exception):
    """A task did not give an answer; with its last words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """``python`` has the contender, ``reader`` reads what it wrote."""

    name: str
    of: Contender
    python: Path
    reader: Path
    shared: Mapping[str, str]

    @classmethod
    def of_name(cls, name: str, shared: Mapping[str, str]) -> Bench:
        """Raises RuntimeError or subprocess.TimeoutExpired where its environment cannot be made."""
        of, ours = contender(name), Path(sys.executable)
        python = environment(_folder(of.REQUIREMENTS[0]), of.REQUIREMENTS) if of.REQUIREMENTS else ours
        reader = ours if getattr(of, "READ_BY_US", False) else python
        return cls(name=name, of=of, python=python, reader=reader, shared=shared)

    @contextmanager
    def place(self) -> Iterator[Place]:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        folder = Path(tempfile.mkdtemp(prefix="bench-"))
        try:
            yield Place(folder=folder, port=port)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def start(self, place: Place, task: str, *arguments: object) -> subprocess.Popen[str]:
        python = self.reader if task in ("watch", "await", "chart", "count") else self.python
        command = [str(python), "-m", "benchmarks.trackers.driver", self.name, task, str(place.folder)]
        return subprocess.Popen(
            [*command, str(place.port), json.dumps(arguments)],
            env=self._env(place),
            cwd=place.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=os.setpgrp,
        )

    def answer(self, process: subprocess.Popen[str], limit_s: float = TASK_S) -> dict[str, Any]:
        """What the task told. Raises Failed."""
        try:
            said, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise Failed(f"no end within {limit_s:g} s") from None
        finally:
            _kill(process)
        told = next((line for line in said.splitlines() if line.startswith("RESULT ")), "")
        if not told:
            raise Failed(said.strip()[-400:] or f"ended with {process.returncode}")
        answer: dict[str, Any] = json.loads(told[7:])
        return answer

    def ask(self, place: Place, task: str, *arguments: object, limit_s: float = TASK_S) -> dict[str, Any]:
        return self.answer(self.start(place, task, *arguments), limit_s)

    def serve(self, place: Place) -> subprocess.Popen[bytes] | None:
        """Its server, once it answers; None where it has none. Raises Failed."""
        arguments = [word.format(bin=self.python.parent) for word in self.of.serve(place)]
        if not arguments:
            return None
        prepare = getattr(self.of, "prepare", None)
        if prepare is not None and not (place.folder / "server.log").exists():
            self.run(place, prepare(place))
        with (place.folder / "server.log").open("ab") as log:
            server = subprocess.Popen(
                [str(self.python), *arguments],
                env=self._env(place),
                cwd=place.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=os.setpgrp,
            )
        until = time.monotonic() + READY_S
        while not _answers(f"{place.url}{self.of.READY}"):
            if time.monotonic() > until or server.poll() is not None:
                _kill(server)
                raise Failed((place.folder / "server.log").read_text(errors="replace").strip()[-400:])
            time.sleep(0.05)
        return server

    @contextmanager
    def serving(self, place: Place, *, only_reports: bool = False) -> Iterator[subprocess.Popen[bytes] | None]:
        """With its server, or without where that only shows files and ``only_reports`` are asked for."""
        server = None if only_reports and not self.of.TAKES_REPORTS else self.serve(place)
        try:
            yield server
        finally:
            kill(server)

    def run(self, place: Place, arguments: list[str]) -> None:
        subprocess.run(
            [str(self.python), *arguments],
            env=self._env(place),
            cwd=place.folder,
            capture_output=True,
            timeout=TASK_S,
            check=False,
        )

    def _env(self, place: Place) -> dict[str, str]:
        path = f"{self.python.parent}:{os.environ['PATH']}"
        return {
            **os.environ,
            **QUIET,
            **self.shared,
            **self.of.environment(place),
            "PATH": path,
            "PYTHONPATH": str(ROOT),
        }


def kill(server: subprocess.Popen[Any] | None) -> None:
    """At once, with all that it started."""
    if server is not None:
        _kill(server)


def _kill(process: subprocess.Popen[Any]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return int(answer.status) < 500
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False


def _folder(requirement: str) -> str:
    return requirement.replace("==", "-").replace("[", "-").replace("]", "")
