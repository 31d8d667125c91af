"""Measures, and prints one table in Markdown: a row a measure, a column a contender."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from benchmarks.trackers import results
from benchmarks.trackers.cells import CELLS, INGEST_S, LONG_RUN_S, TOLD
from benchmarks.trackers.contender import contender
from benchmarks.trackers.measure import CONTENDERS, measure

Told = dict[str, Any]
Cell = Callable[[Told], str]


def print_table() -> None:
    """BENCH_TRACKERS and BENCH_CELLS name a part, "none" no cell at all; the table has what was measured last."""
    names = os.environ.get("BENCH_TRACKERS", " ".join(CONTENDERS)).split()
    cells = os.environ.get("BENCH_CELLS", " ".join(CELLS)).split()
    measure(names, [cell for cell in cells if cell in CELLS])
    kept = {name: results.read(name) for name in CONTENDERS}
    print(f"\n{machine()}\n")
    print("| | " + " | ".join(contender(name).SHOWN for name in CONTENDERS) + " |")
    print("|---|" + "---|" * len(CONTENDERS))
    print("| version | " + " | ".join(_version(name) for name in CONTENDERS) + " |")
    for title, cell, shown in ROWS:
        print(f"| {title} | " + " | ".join(_shown(name, kept[name], cell, shown) for name in CONTENDERS) + " |")
    print()
    for name in CONTENDERS:
        for line in _reasons(name, kept[name]):
            print(f"- {contender(name).SHOWN}: {line}")


def machine() -> str:
    with open("/proc/meminfo", encoding="utf-8") as file:
        gib = int(file.readline().split()[1]) / 2**20
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")
    return (
        f"{os.cpu_count()} cores ({model}), {gib:.0f} GiB, {platform.system()}, Python {platform.python_version()}"
    )


def _version(name: str) -> str:
    if name.startswith("rlvitals"):
        return version("rlvitals")
    needed = contender(name).REQUIREMENTS
    return needed[0].partition("==")[2] if needed else ""


def _shown(name: str, kept: Told, cell: str, shown: Cell) -> str:
    if cell in contender(name).WITHOUT:
        return "–"
    told = kept.get(cell)
    if told is None:
        return ""
    return "failed" if "error" in told else shown(told)


def _reasons(name: str, kept: Told) -> list[str]:
    why: dict[str, list[str]] = {}
    for cell, reason in contender(name).WITHOUT.items():
        why.setdefault(reason, []).append(cell)
    told = [f"no {', '.join(cells)}: {reason}" for reason, cells in why.items()]
    return told + [
        f"{cell} failed: {said['error'].strip().splitlines()[-1]}"
        for cell, said in kept.items()
        if "error" in said
    ]


def _rate(runs: int) -> Cell:
    def shown(told: Told) -> str:
        one = told.get(f"runs{runs}", {})
        if "points_s" not in one:
            return "failed"
        lost = f", {one['lost']:,} steps not there after {INGEST_S:g} s" if one["lost"] else ""
        return f"{one['points_s'] / 1000:,.0f} k{lost}"

    return shown


def _bytes(told: Told) -> str:
    """Nothing where what was stored lies in a server of its own."""
    stored = told.get("runs1", {}).get("bytes_a_point")
    return f"{stored:.0f}" if stored else ""


def _size(told: Told) -> str:
    alone = f"{told['size_mb']:.1f} MB, {told['packages']}"
    return (
        f"{alone}; with the service {told['server_mb']:.0f} MB, {told['server_packages']}"
        if "server_mb" in told
        else alone
    )


def _killed(told: Told) -> str:
    lost = f"{TOLD - told['found']:,}"
    return f"{lost}; {TOLD - told['recovered']:,} after `rlvitals sync`" if "recovered" in told else lost


def _survived(told: Told) -> str:
    return f"{'yes' if told['spike'] else 'no'} / {'yes' if told['nan'] else 'no'}"


def _outage(told: Told) -> str:
    unlogged = told["expected"] - told["logged"]
    never = f", {unlogged:,} never logged" if unlogged > told["expected"] // 100 else ""
    return f"{told['lost']:,}{never}"


ROWS: tuple[tuple[str, str, Cell], ...] = (
    ("import, s", "import", lambda told: f"{told['import_s']:.2f}"),
    ("installed, packages", "size", _size),
    ("50 scalars, caller's median, µs", "cost", lambda told: f"{told['median']:,.0f}"),
    ("its p99, µs", "cost", lambda told: f"{told['p99']:,.0f}"),
    (
        "median / that of json.dumps + write",
        "cost",
        lambda told: f"{told['median_of_floor']:.2f}" if "median_of_floor" in told else "",
    ),
    ("log → readable, p50 / p99, s", "latency", lambda told: f"{told['p50_s']:.2f} / {told['p99_s']:.2f}"),
    ("ingest to queryable, points/s: 1 run", "ingest", _rate(1)),
    ("8 runs", "ingest", _rate(8)),
    ("32 runs", "ingest", _rate(32)),
    ("bytes on disk a point", "ingest", _bytes),
    (f"a long run: steps logged in {LONG_RUN_S:g} s", "chart", lambda told: f"{told['steps']:,}"),
    (
        "its chart, first / again, ms",
        "chart",
        lambda told: f"{1e3 * told['first_s']:,.0f} / {1e3 * told['again_s']:,.0f}",
    ),
    ("spike / NaN in the default chart", "chart", _survived),
    ("lost by kill -9 of the trainer, of 1,000 steps", "killed", _killed),
    ("lost by 20 s without the server", "outage", _outage),
    ("longest call then, ms", "outage", lambda told: f"{told['longest_ms']:,.0f}"),
)
