"""The same runs through other monitors, each in its own environment: who rings, when, with which cause.

Every peer has its default configuration and every number that it has a place for. It is asked as it is meant to be
used: step by step, and about the whole run at the end where it gives such a report. All are measured alike.
"""

from __future__ import annotations

from benchmarks.peers.runs import print_cases, print_simulated


def main() -> None:
    print_cases()
    print_simulated()
