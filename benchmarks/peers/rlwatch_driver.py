"""Runs in rlwatch's own environment: runs on standard input, what it said of each on standard output.

Its manual interface and its default configuration; every number that it has a parameter for. Where it maps a
name that a trainer does not log, the trainer's own quantity is given to it.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from typing import Any

import rlwatch  # type: ignore[import-not-found]

TAKES = {
    "policy.entropy": "entropy",
    "kl.k3": "kl_divergence",
    "kl.capped": "kl_divergence",
    "kl.k1": "kl_divergence",
    "reward.mean": "reward_mean",
    "reward.std": "reward_std",
    "policy.loss": "loss",
    "policy.learning_rate": "learning_rate",
    "ratio.clip_share": "clip_fraction",
    "gradient.norm": "grad_norm",
}
LOGGED = {"critic/advantages/std": "advantage_std", "advantage_std": "advantage_std"}


def main() -> None:
    logging.disable(logging.CRITICAL)
    told = {run["name"]: _run(run) for run in json.load(sys.stdin)}
    json.dump(told, sys.stdout)


def _run(run: dict[str, Any]) -> dict[str, Any]:
    rang: list[list[Any]] = []
    left: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RLWATCH_LOG_DIR"] = folder
        monitor = rlwatch.attach(framework="manual", run_id=run["name"])
        for line, step, values, logged in run["steps"]:
            given = {LOGGED[name]: value for name, value in logged.items() if name in LOGGED}
            for name, value in values.items():
                if name in TAKES:
                    given.setdefault(TAKES[name], value)
                else:
                    left.add(name)
            for alert in monitor.log_step(step, **given):
                rang.append([line, alert.severity, alert.detector])
        monitor.stop()
    return {"rang": rang, "left": sorted(left)}


if __name__ == "__main__":
    main()
