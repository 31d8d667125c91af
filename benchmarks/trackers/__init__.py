"""The same scalars through other trackers and the bare floor: cost, latency, ingest, charts, losses."""

from __future__ import annotations


def main() -> None:
    # only here: what is below also runs in a peer's own environment, which has none of ours
    from benchmarks.trackers.table import print_table

    print_table()
