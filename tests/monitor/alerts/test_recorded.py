"""The catalogue against recorded runs: healthy ones must be left in peace, sick ones named in time."""

from __future__ import annotations

import pytest

from benchmarks.simulated import EARLIER, FAULT_AT, collapse
from rlvitals.contract.alert import Severity
from rlvitals_monitor.alerts.replay import Episode
from rlvitals_monitor.rules.loader import load_rules
from tests.monitor.alerts.recorded import DATA, fired, toy, verl


def loud(found: list[Episode]) -> list[tuple[str, str, int]]:
    return [(e.alert, e.severity.value, e.fired) for e in found if e.severity is not Severity.INFO]


@pytest.mark.parametrize("name", ["healthy", "healthy_fast", "healthy_growth"])
def test_a_healthy_toy_run_gives_no_warning(name: str) -> None:
    assert loud(fired(load_rules(), toy(name))) == []


@pytest.mark.parametrize(
    "case",
    [
        "117-softgrpo-1p5b-plain-grpo-healthy",
        "118-softgrpo-llama3b-plain-grpo-entropy-swings",
        "119-softgrpo-llama3b-soft-healthy",
    ],
)
def test_a_healthy_real_run_of_six_hundred_steps_gives_no_warning(case: str) -> None:
    assert loud(fired(load_rules(), verl(case))) == []


@pytest.mark.parametrize(
    ("case", "falls_at"),
    [
        ("110-softgrpo-1p5b-soft-tau0p1-late-collapse", 560),
        ("111-softgrpo-1p5b-soft-tau0p25-collapse", 326),
        ("112-softgrpo-1p5b-soft-topp95-tau0p25-collapse", 451),
    ],
)
def test_a_collapse_is_foretold_by_the_mismatch_before_the_reward_falls(case: str, falls_at: int) -> None:
    found = loud(fired(load_rules(), verl(case)))
    first = {alert: step for alert, _, step in reversed(found)}
    assert first["rollout_mismatch_trend"] < falls_at
    assert first["rollout_mismatch_trend"] < first["reward_drop"]


def test_a_real_entropy_collapse_is_named_and_nothing_else() -> None:
    found = loud(fired(load_rules(), verl("121-softgrpo-7b-plain-grpo-entropy-collapse")))
    assert {alert for alert, _, _ in found} == {"entropy_collapse"}


@pytest.mark.parametrize(
    ("name", "alert"),
    [
        ("kl_coef_huge", "kl_pull_dominates"),
        ("forced_eos_k3", "kl_grad_one_id"),
        ("forced_eos_k3post", "nonfinite"),
        ("stale_rollout", "rollout_mismatch"),
        ("mismatch", "rollout_mismatch"),
        ("trunc_growth", "truncation"),
        ("trunc_cap", "truncation"),
        ("entropy_collapse", "ratio_extreme"),
        ("byte_hack", "degenerate_token"),
    ],
)
def test_a_planted_fault_of_the_toy_is_named(name: str, alert: str) -> None:
    assert alert in {found for found, _, _ in loud(fired(load_rules(), toy(name)))}


@pytest.mark.parametrize(
    "name",
    [
        "byte_hack",
        "entropy_collapse",
        "forced_eos_k3post",
        "kl_coef_huge",
        "kl_ramp_sgd_k2",
        "kl_ramp_sgd_k3",
        "stale_rollout",
        "trunc_cap",
        "trunc_growth",
    ],
)
def test_a_planted_fault_is_warned_of_after_it_began_and_before_the_run_falls(name: str) -> None:
    steps, fault = toy(name), EARLIER.get(name, FAULT_AT)
    falls_at = collapse(DATA / f"{name}.csv", fault)
    assert falls_at is not None
    assert fault <= loud(fired(load_rules(), steps))[0][2] < falls_at
