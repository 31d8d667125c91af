"""Runs in rldoctor's own environment: runs on standard input, what it said of each on standard output.

Its live monitor, then its report on the whole run, both as they are by default. It reads trainers' names itself;
a number whose name it does not know is given to it under one that it does.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from rl_doctor import diagnose, run_from_records  # type: ignore[import-not-found]
from rl_doctor.aliases import resolve, resolve_reward_component  # type: ignore[import-not-found]
from rl_doctor.live import LiveMonitor  # type: ignore[import-not-found]

KNOWN_AS = {
    "reward.mean": "reward",
    "reward.std": "reward_std",
    "reward.max": "reward_max",
    "reward.min": "reward_min",
    "reward.zero_std_groups": "frac_reward_zero_std",
    "policy.entropy": "entropy",
    "kl.k3": "kl",
    "kl.capped": "kl",
    "kl.k1": "kl",
    "ratio.clip_share": "clip_ratio",
    "ratio.clip_low_share": "clip_ratio/low_mean",
    "ratio.clip_high_share": "clip_ratio/high_mean",
    "gradient.norm": "grad_norm",
    "policy.learning_rate": "lr",
    "policy.loss": "loss",
    "length.mean": "completions/mean_length",
    "length.max": "completions/max_length",
    "length.truncation_rate": "completions/clipped_ratio",
    "critic.explained_variance": "critic/vf_explained_var",
    "progress.step_time": "step_time",
}


def main() -> None:
    logging.disable(logging.CRITICAL)
    told = {run["name"]: _run(run) for run in json.load(sys.stdin)}
    json.dump(told, sys.stdout)


def _run(run: dict[str, Any]) -> dict[str, Any]:
    monitor = LiveMonitor(name=run["name"])
    rang: list[list[Any]] = []
    left: set[str] = set()
    records = []
    for line, step, values, logged in run["steps"]:
        record = dict(logged)
        known = {resolve(name) for name in logged}
        for name, value in values.items():
            other = KNOWN_AS.get(name)
            if other is None:
                left.add(name)
            elif resolve(other) not in known:
                record.setdefault(other, value)
        left.update(n for n in logged if resolve(n) is None and resolve_reward_component(n) is None)
        records.append({"step": step, **record})
        rang += [_said(line, finding) for finding in monitor.log(record, step=step)]
    if records:
        seen = {name for _, _, name in rang}
        whole = diagnose(run_from_records(records))
        last = run["steps"][-1][0]
        rang += [_said(last, finding) for finding in whole.problems if finding.detector not in seen]
    return {"rang": rang, "left": sorted(left)}


def _said(line: int, finding: Any) -> list[Any]:
    return [line, finding.severity.name.lower(), finding.detector]


if __name__ == "__main__":
    main()
