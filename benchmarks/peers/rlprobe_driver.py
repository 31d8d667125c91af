"""Runs in rlprobe's own environment: runs on standard input, what it said of each on standard output.

Its recorded steps, judged as its live mode does (every 25 steps, from 30 on) and once more at the end; every
number that its record has a field for. Numbers that are not finite are counted into the fields meant for them.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from rlprobe.doctor.engine import diagnose_view  # type: ignore[import-not-found]
from rlprobe.doctor.runview import RunView  # type: ignore[import-not-found]
from rlprobe.schemas import RunManifest, StepRecord  # type: ignore[import-not-found]

EVERY = 25
FIELDS = {
    "reward.mean": "reward_mean",
    "reward.std": "reward_std",
    "reward.min": "reward_min",
    "reward.max": "reward_max",
    "reward.group_std": "group_reward_std_mean",
    "reward.zero_std_groups": "zero_variance_group_frac",
    "kl.k3": "kl_mean",
    "kl.capped": "kl_mean",
    "kl.k1": "kl_mean",
    "policy.entropy": "entropy_mean",
    "ratio.mean": "ratio_mean",
    "ratio.clip_share": "clip_fraction",
    "critic.value_loss": "value_loss",
    "critic.explained_variance": "value_explained_variance",
    "critic.clip_share": "value_clip_fraction",
    "policy.loss": "loss",
    "policy.learning_rate": "lr",
    "gradient.norm": "grad_norm",
    "length.mean": "completion_len_mean",
    "length.max": "completion_len_max",
    "length.truncation_rate": "truncation_rate",
    "progress.step_time": "step_time_s",
}
LOGGED = {"critic/advantages/mean": "adv_mean", "critic/advantages/std": "adv_std", "advantage_std": "adv_std"}
COUNTED = ("loss", "grad_norm")


def main() -> None:
    told = {run["name"]: _run(run) for run in json.load(sys.stdin)}
    json.dump(told, sys.stdout)


def _run(run: dict[str, Any]) -> dict[str, Any]:
    manifest = RunManifest(run_id=run["name"], created_at="2026-01-01T00:00:00+00:00", algorithm="grpo")
    records: list[Any] = []
    rang: list[list[Any]] = []
    left: set[str] = set()
    seen: set[tuple[str, str]] = set()
    for place, (line, step, values, logged) in enumerate(run["steps"], 1):
        records.append(_record(step, values, logged, left))
        if place % EVERY == 0 or place == len(run["steps"]):
            for finding in diagnose_view(RunView(manifest, records)):
                key = finding.signature_id, finding.severity
                if key not in seen:
                    seen.add(key)
                    severity = {"warn": "warning"}.get(finding.severity, finding.severity)
                    rang.append([line, severity, finding.signature_id])
    return {"rang": rang, "left": sorted(left)}


def _record(step: int, values: dict[str, float], logged: dict[str, float], left: set[str]) -> Any:
    fields: dict[str, Any] = {LOGGED[name]: value for name, value in logged.items() if name in LOGGED}
    for name, value in values.items():
        if name in FIELDS:
            fields.setdefault(FIELDS[name], value)
        else:
            left.add(name)
    numbers = [fields[name] for name in COUNTED if name in fields]
    components = {
        name.removeprefix("rewards/").removesuffix("/mean"): value
        for name, value in logged.items()
        if name.startswith("rewards/") and name.endswith("/mean")
    }
    return StepRecord(
        step=step,
        nan_count=sum(1 for x in numbers if math.isnan(x)),
        inf_count=sum(1 for x in numbers if math.isinf(x)),
        reward_components=components,
        **fields,
    )


if __name__ == "__main__":
    main()
