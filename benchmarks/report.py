"""report() of 50 scalars, journal append included, against json.dumps + append of the same line and Trackio."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import rlvitals
from benchmarks.sink import sinking

SCALARS = 50
WARM_CALLS, COLD_CALLS, BLOCK = 20_000, 300, 50
COLD_STEP_S = 0.005
ROOT = Path(__file__).resolve().parent.parent
PEER_PYTHON = ROOT / ".venv-trackio" / "bin" / "python"
VALUES = {f"family_{i % 7}.metric_{i}": 0.1234567 * i + 1e-5 for i in range(SCALARS)}

Call = Callable[[int], object]
_STEPS = itertools.count()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sinking() as url:
        online = rlvitals.init(run="bench", url=url, spool=Path(folder) / "on", mode="online")
        offline = rlvitals.init(run="bench", spool=Path(folder) / "off", mode="offline")
        with (Path(folder) / "baseline.jsonl").open("a") as lines:

            def baseline(step: int) -> None:
                lines.write(json.dumps({"step": step, "time_s": time.time(), **VALUES}) + "\n")
                lines.flush()

            calls: dict[str, Call] = {
                "J: json.dumps + append": baseline,
                "floor: pack + crc + write": _floor(Path(folder) / "floor"),
                "report(), offline": lambda step: offline.report(step, VALUES),
                "report(), sending": lambda step: online.report(step, VALUES),
            }
            _table("warm, a call each 1 ms", _interleaved(calls, WARM_CALLS // 5, lambda: _spin(0.001)))
            _table("warm, back to back", _interleaved(calls, WARM_CALLS, None))
            _table("cold, 5 ms of Python before each", _interleaved(calls, COLD_CALLS, lambda: _spin(COLD_STEP_S)))
        online.close()
        offline.close()
    _peer()


def _floor(path: Path) -> Call:
    """The least that a journalled step can cost in Python: no checks, no names, no lock."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    pack = struct.Struct(f"<9sQqd9s{SCALARS + 4}d").pack

    def call(step: int) -> None:
        body = pack(b"", step, step, time.time(), b"", 0.0, 0.0, 0.0, 0.0, *VALUES.values())
        os.write(descriptor, body + crc32(body).to_bytes(4, "little"))

    return call


def _interleaved(calls: dict[str, Call], count: int, between: Callable[[], None] | None) -> dict[str, list[float]]:
    """Microseconds of each call; the contenders take turns in short blocks, so that all see the same machine."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(max(1, count // BLOCK)):
        for name, call in calls.items():
            for _ in range(BLOCK):
                if between is not None:
                    between()
                step = next(_STEPS)
                began = time.perf_counter_ns()
                call(step)
                taken[name].append((time.perf_counter_ns() - began) / 1000)
    return taken


def _spin(seconds: float) -> None:
    """Plain Python work on fresh objects, as a training loop's own between two reports."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        sorted({str(i): [i] for i in range(200)})


def _table(title: str, taken: dict[str, list[float]]) -> None:
    base = statistics.median(next(iter(taken.values())))
    print(f"{title} ({len(next(iter(taken.values())))} calls each; µs, and as multiples of J's median)")
    print(f"  {'':26}{'median':>9}{'p99':>9}{'max':>10}{'median/J':>10}{'p99/J':>8}")
    for name, some in taken.items():
        ordered = sorted(some)
        median, p99, top = statistics.median(ordered), ordered[int(len(ordered) * 0.99)], ordered[-1]
        print(f"  {name:26}{median:9.1f}{p99:9.1f}{top:10.1f}{median / base:10.2f}{p99 / base:8.2f}")


PEER = """
import json, os, statistics, sys, time
os.environ["TRACKIO_DIR"] = sys.argv[1]
import trackio
values = json.loads(sys.argv[2])
trackio.init(project="bench", name="bench", embed=False)
def spin(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        sorted({str(i): [i] for i in range(200)})
for title, count, pause in (("log(), each 1 ms", 2000, 0.001), ("log(), cold", 300, 0.005)):
    taken = []
    for _ in range(count):
        spin(pause)
        began = time.perf_counter_ns()
        trackio.log(values)
        taken.append((time.perf_counter_ns() - began) / 1000)
    taken.sort()
    row = [title, statistics.median(taken), taken[int(len(taken) * .99)], taken[-1]]
    print("RESULT " + json.dumps(row), flush=True)
os._exit(0)
"""


def _peer() -> None:
    """Trackio's log() in an environment of its own, since it brings much along."""
    why = _install_peer()
    if why:
        print(f"!! TRACKIO WAS LEFT OUT: {why}")
        return
    with tempfile.TemporaryDirectory() as folder:
        arguments = [str(PEER_PYTHON), "-c", PEER, folder, json.dumps(VALUES)]
        env = {**os.environ, "TRACKIO_DIR": folder, "HF_HUB_OFFLINE": "1", "GRADIO_ANALYTICS_ENABLED": "False"}
        try:
            ended = subprocess.run(arguments, capture_output=True, text=True, timeout=180, env=env, check=False)
        except subprocess.TimeoutExpired:
            print("!! TRACKIO WAS LEFT OUT: it did not end within 180 s")
            return
    rows = [json.loads(line[7:]) for line in ended.stdout.splitlines() if line.startswith("RESULT ")]
    if not rows:
        print(f"!! TRACKIO WAS LEFT OUT: it failed: {ended.stderr.strip()[-500:]}")
        return
    print("Trackio, its own server running, the same 50 scalars (µs)")
    for title, median, p99, top in rows:
        print(f"  {title:26}{median:9.1f}{p99:9.1f}{top:10.1f}")


def _install_peer() -> str:
    """Makes its environment if need be; returns why that was not possible."""
    if PEER_PYTHON.exists():
        return ""
    print("· making .venv-trackio", flush=True)
    folder = PEER_PYTHON.parent.parent
    pip = [str(PEER_PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "trackio"]
    for command in ([sys.executable, "-m", "venv", str(folder)], pip):
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            return (ended.stderr.strip() or "it could not be installed").splitlines()[-1]
    return ""


if __name__ == "__main__":
    main()
