"""Importing a console log: lines a second and peak memory, beside a bare loop of one compiled ``re`` over it.

``python -m benchmarks.import_floor 1024`` takes a log of so many MiB (64 without it).
"""

from __future__ import annotations

import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rlvitals.formats.log import Log
from rlvitals.formats.row import BadLine
from rlvitals_monitor.importers.past_run import read_past_run
from rlvitals_monitor.replay import replay_log
from rlvitals_monitor.rules.loader import load_rules

MEBIBYTES = 64
METRICS = (
    *(f"actor/{name}" for name in ("pg_loss", "kl_loss", "entropy", "grad_norm", "ppo_kl", "pg_clipfrac", "lr")),
    *(f"critic/{name}" for name in ("score/mean", "score/max", "score/min", "advantages/max", "advantages/min")),
    *(f"response_length/{name}" for name in ("mean", "max", "clip_ratio")),
    *("training/rollout_probs_diff_mean", "perf/throughput", "timing_s/step"),
)
LINE = re.compile(r"step:(\d+) - (.*)")


def main(mebibytes: int = MEBIBYTES) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "console.log"
        lines, steps = _write(path, mebibytes << 20)
        size = path.stat().st_size / (1 << 20)
        print(f"{size:.0f} MiB, {lines} lines, {steps} records of {len(METRICS)} numbers, junk and wraps between")
        before = _peak_mib()
        floor = _timed(lambda: _floor(path))
        read = _timed(lambda: _read(path))
        replayed = _timed(lambda: _replay(path))
        print(f"  {'':34}{'s':>8}{'lines/s':>12}{'MiB/s':>8}{'x floor':>9}")
        for name, seconds in (("one compiled re, a loop", floor), ("read", read), ("read and judged", replayed)):
            print(f"  {name:34}{seconds:8.2f}{lines / seconds:12,.0f}{size / seconds:8.1f}{seconds / floor:9.1f}")
        print(f"  peak memory {_peak_mib():.0f} MiB, {_peak_mib() - before:.0f} more than before the first read")
    print("  the floor finds where a record is; reading turns each of its numbers into one, by name")


def _write(path: Path, size: int) -> tuple[int, int]:
    """A log as a long run leaves it: records behind prefixes and colours, progress bars, warnings, wraps."""
    lines = steps = written = 0
    with path.open("w", encoding="utf-8") as file:
        while written < size:
            steps += 1
            pairs = " - ".join(
                f"{name}:{(steps * 7919 + at) % 1000 / 1000 + 1e-3!r}" for at, name in enumerate(METRICS)
            )
            text = f"\x1b[36m(TaskRunner pid=4711)\x1b[0m step:{steps} - {pairs}\n"
            if steps % 50 == 0:
                text = text.replace(" - response_length/mean", "\n - response_length/mean")
            text += f"Training Progress:  {steps % 100}%|███       | {steps}/100000 [01:02<03:04,  2.11s/it]\n" * 3
            text += (
                "(WorkerDict pid=4712) INFO 01-02 03:04:05 engine.py:88] sleeping level 1, freed 40.2 GiB\n" * 2
            )
            written += file.write(text)
            lines += text.count("\n")
    return lines, steps


def _floor(path: Path) -> int:
    found = 0
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            found += LINE.search(line) is not None
    return found


def _read(path: Path) -> int:
    bad = sum(isinstance(item, BadLine) for item in Log.of(path).rows())
    if bad:
        raise AssertionError(f"{bad} lines of a sound log were called broken")
    return bad


def _replay(path: Path) -> None:
    replay_log(read_past_run(path), load_rules())


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else MEBIBYTES)
