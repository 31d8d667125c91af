"""Recorded runs outside of the repository, where they are there: a toy simulator's series, real trainers' logs."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from rlvitals_monitor.alerts.replay import Episode, Step, episodes, replay
from rlvitals_monitor.rules.rule import Rule

SHARED = Path(__file__).parents[4] / "shared"
DATA = SHARED / "research" / "signals" / "data"
START = datetime(2026, 1, 1, tzinfo=timezone.utc)

TOY = {
    "loss": "policy.loss",
    "grad_norm": "gradient.norm",
    "reward": "reward.mean",
    "zero_std": "reward.zero_std_groups",
    "adv_max": "reward.advantage_abs_max",
    "kl_k1": "kl.k1",
    "kl_k3": "kl.k3",
    "klg_l2_k3": "kl.grad_l2",
    "klg_max_k3": "kl.grad_max",
    "klg_id_share": "kl.grad_top_id_share",
    "kl_clamped": "kl.clamped_share",
    "kl_share": "kl.pull_ratio",
    "beta": "kl.coef",
    "ratio_max": "ratio.max",
    "approx_kl": "ratio.approx_kl",
    "ess": "ratio.ess",
    "clip_lo": "ratio.clip_low_share",
    "clip_hi": "ratio.clip_high_share",
    "mis_abs": "ratio.rollout_logp_diff",
    "entropy": "policy.entropy",
    "top_share": "text.top_id_share",
    "byte_ratio": "text.byte_piece_ratio",
    "len_mean": "length.mean",
    "trunc": "length.truncation_rate",
    "nonfinite": "numerics.nonfinite_logprobs",
}
VERL = {
    "critic/score/mean": "reward.mean",
    "critic/score/max": "reward.max",
    "critic/score/min": "reward.min",
    "actor/entropy": "policy.entropy",
    "actor/kl_loss": "kl.k3",
    "actor/pg_loss": "policy.loss",
    "actor/grad_norm": "gradient.norm",
    "actor/lr": "policy.learning_rate",
    "response_length/mean": "length.mean",
    "response_length/clip_ratio": "length.truncation_rate",
    "training/rollout_probs_diff_mean": "ratio.rollout_prob_diff",
}


def toy(name: str) -> list[Step]:
    """A run of the toy simulator; skips loudly where it is not there."""
    path = _there(DATA / f"{name}.csv")
    with path.open(encoding="utf-8") as file:
        rows = [
            (int(row["step"]), {TOY[k]: float(v) for k, v in row.items() if k in TOY and v})
            for row in csv.DictReader(file)
        ]
    return [_step(step, values) for step, values in rows]


def verl(case: str) -> list[Step]:
    """A real run's console log; skips loudly where it is not there."""
    path = _there(SHARED / "cases" / case / "log.txt")
    return [_step(step, values) for step, values in _console(path)]


def fired(rules: tuple[Rule, ...], steps: list[Step], config: Mapping[str, object] | None = None) -> list[Episode]:
    return episodes(replay(rules, steps, config or {}))


def _there(path: Path) -> Path:
    if not path.exists():
        pytest.skip(f"NO RECORDED RUNS: {path.name} is not beside the repository, false alarms are not measured")
    return path


def _console(path: Path) -> Iterator[tuple[int, dict[str, float]]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        pairs = dict(part.rsplit(":", 1) for part in line.split(" - ") if ":" in part)
        if "step" in pairs:
            yield int(pairs["step"]), {VERL[name]: float(value) for name, value in pairs.items() if name in VERL}


def _step(step: int, values: Mapping[str, float]) -> Step:
    return step, START + timedelta(seconds=10 * step), values
