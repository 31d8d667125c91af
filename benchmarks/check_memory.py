"""`rlvitals check` over one large JSONL file: peak memory, and MB/s beside a bare loop over its lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

MEGABYTES = 64
"""Of the file that is written and read; RLVITALS_BENCH_MB sets another size."""
SENTENCE = (
    "the sum of two odd numbers is even because each of them is one more than an even number and so "
    "what is left over makes a pair hence we find that the answer follows from the first step"
)
WORDS = SENTENCE.split(" ")
CHINESE = "先把等式两边同时乘以二，再把常数移到右边，于是得到答案。检查一下：代入原式，两边相等。"


def main() -> None:
    megabytes = int(os.environ.get("RLVITALS_BENCH_MB", MEGABYTES))
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("English, rendered by ChatML", _english()), ("Chinese messages", _chinese())):
            path = Path(folder) / "data.jsonl"
            _write(path, rows, megabytes << 20)
            size = path.stat().st_size / 1e6
            bare = _measured("bare", path)
            parse = _measured("json", path)
            check = _measured("check", path)
            print(f"{name}: {size:.0f} MB")
            for what, (seconds, peak) in (("for line in file", bare), ("+ json.loads", parse), ("check", check)):
                print(f"  {what:18}{size / seconds:9.0f} MB/s{seconds / bare[0]:8.1f} × bare{peak:8.0f} MB peak")


def _write(path: Path, rows: Iterator[dict[str, object]], size: int) -> None:
    with path.open("wb") as file:
        while file.tell() < size:
            file.write(json.dumps(next(rows), ensure_ascii=False).encode() + b"\n")


def _english() -> Iterator[dict[str, object]]:
    number = 0
    while True:
        number += 1
        turn = " ".join(WORDS[(number * 7 + k) % len(WORDS)] for k in range(40 + number % 90))
        answer = " ".join(WORDS[(number * 3 + k) % len(WORDS)] for k in range(60 + number % 300))
        prompt = f"<|im_start|>user\n{number}: {turn}<|im_end|>\n<|im_start|>assistant\n"
        yield {"prompt": prompt, "completion": f"{answer}<|im_end|>"}


def _chinese() -> Iterator[dict[str, object]]:
    number = 0
    while True:
        number += 1
        text = CHINESE * (1 + number % 9)
        turns = [{"role": "user", "content": f"{number}：{text}"}, {"role": "assistant", "content": text}]
        yield {"messages": turns, "id": number}


READ = """
import resource, sys, time
from pathlib import Path
path, how = Path(sys.argv[1]), sys.argv[2]
if how == "check":
    from rlvitals.preflight.data import read_file
began = time.perf_counter()
if how == "check":
    facts = read_file(path).facts
    assert facts.rows and not facts.spots, facts
elif how == "json":
    import json
    for line in path.open("rb"):
        json.loads(line.decode())
else:
    for line in path.open("rb"):
        pass
took = time.perf_counter() - began
print(took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3))
"""


def _measured(how: str, path: Path) -> tuple[float, float]:
    """Seconds and peak resident megabytes of reading the file in a process of its own."""
    command = [sys.executable, "-c", READ, str(path), how]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak = map(float, ended.stdout.split())
    return seconds, peak


if __name__ == "__main__":
    main()
