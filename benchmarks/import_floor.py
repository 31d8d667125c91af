"""Importing a console log: lines a second and peak memory, beside a bare loop of one compiled ``re`` over it.

Half of the lines are records and what belongs to them; the numbers are noise, so that alerts open and close.

``python -m benchmarks.import_floor 1024`` takes a log of so many MiB (64 without it).
"""

from __future__ import annotations

import contextlib
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
OTHERS = ("WorkerDict", "vLLMHttpServer", "RewardManager")
BAR = "Training Progress:  {at}%|███       | {at}/100 [01:02<03:04,  2.11s/it]\n"
TALK = (
    "({who} pid={pid}) INFO 01-02 03:04:05 engine.py:88] sleeping level 1, freed 40.2 GiB\n"
    "\x1b[36m({who} pid={pid}, ip=10.0.0.7)\x1b[0m WARNING: norm: cut at 1.0 [repeated 7x across cluster]\n"
)


def main(mebibytes: int = MEBIBYTES) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "console.log"
        lines, steps = _write(path, mebibytes << 20)
        size = path.stat().st_size / (1 << 20)
        print(f"{size:.0f} MiB, {lines:,} lines, {steps:,} records of {len(METRICS)} numbers, {OF_WHAT}")
        before = _peak_mib()
        floor = _timed(lambda: _floor(path))
        numbers = _timed(lambda: _numbers(path))
        read = _timed(lambda: _read(path, steps))
        after_read = _peak_mib()
        replayed = _timed(lambda: _replay(path, steps))
        print(f"  {'':34}{'s':>8}{'lines/s':>12}{'MiB/s':>8}{'x floor':>9}")
        rows = (
            ("one compiled re, a loop", floor),
            ("and each number it finds, by name", numbers),
            ("read", read),
            ("read and judged", replayed),
        )
        for name, seconds in rows:
            print(f"  {name:34}{seconds:8.2f}{lines / seconds:12,.0f}{size / seconds:8.1f}{seconds / floor:9.1f}")
        peaks = f"{before:.0f} MiB before, {after_read:.0f} after reading, {_peak_mib():.0f} after judging"
        print(f"  peak memory {peaks}")
    print(WHY)


OF_WHAT = "three workers that talk between, bars, wraps, colours, NaN as NumPy prints it"
WHY = """\
  The floor finds where a record is. The second line splits what it found and calls float(): what the numbers cost
  in Python at the least. Reading does both, and what real logs ask for: colours and Ray's prefixes taken off, a
  state for each worker, wrapped records put together, NumPy's and torch's spellings, a look at each other line for
  the five further forms of a record. Judging runs every rule at every step. Seconds are of the processor."""


def _write(path: Path, size: int) -> tuple[int, int]:
    """A log as a long run leaves it: records behind prefixes and colours, progress bars, warnings, wraps."""
    lines = steps = written = 0
    with path.open("w", encoding="utf-8") as file:
        while written < size:
            steps += 1
            text = _record(steps) + BAR.format(at=steps % 100) * 2
            text += TALK.format(who=OTHERS[steps % 3], pid=5000 + steps % 8)
            written += file.write(text)
            lines += text.count("\n")
    return lines, steps


def _record(step: int) -> str:
    numbers = [f"{(step * 7919 + at) % 1000 / 1000 + 1e-3!r}" for at in range(len(METRICS))]
    if step % 1000 == 0:
        numbers[4] = "np.float64(nan)"
    pairs = " - ".join(f"{name}:{number}" for name, number in zip(METRICS, numbers, strict=True))
    text = f"\x1b[36m(TaskRunner pid=4711)\x1b[0m step:{step} - {pairs}\n"
    # another worker's line and a bar come between the parts of a record that the terminal wrapped
    between = BAR.format(at=step % 100) + TALK.format(who=OTHERS[0], pid=5001)
    head = " - response_length/mean"
    return text.replace(head, f"\n{between}(TaskRunner pid=4711){head}") if step % 50 == 0 else text


def _floor(path: Path) -> int:
    found = 0
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            found += LINE.search(line) is not None
    return found


def _numbers(path: Path) -> int:
    found = 0
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            record = LINE.search(line)
            if record is None:
                continue
            values = {}
            for pair in record[2].split(" - "):
                name, _, number = pair.rpartition(":")
                with contextlib.suppress(ValueError):
                    values[name] = float(number)
            found += len(values)
    return found


def _read(path: Path, steps: int) -> None:
    found = bad = numbers = 0
    for item in Log.of(path).rows():
        if isinstance(item, BadLine):
            bad += 1
        else:
            found += 1
            numbers += len(item.values)
    if bad or (found, numbers) != (steps, steps * len(METRICS)):
        raise AssertionError(
            f"{steps} records of {len(METRICS)}: {found} with {numbers} numbers read, {bad} broken"
        )


def _replay(path: Path, steps: int) -> None:
    found = replay_log(read_past_run(path), load_rules())
    if found.past.count != steps:
        raise AssertionError(f"{found.past.count} of {steps} steps judged")


def _timed(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else MEBIBYTES)
