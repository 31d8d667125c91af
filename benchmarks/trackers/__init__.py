"""The same 50 scalars through other trackers and the bare floor: cost for the caller, import, size, kill -9."""

from __future__ import annotations

from benchmarks.trackers.table import print_table


def main() -> None:
    print_table()
