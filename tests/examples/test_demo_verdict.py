"""The demo tells when one of its promises did not come true."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("rich", reason="the server extra is not installed")


def alert(rule: str, severity: str = "warning", fired_step: int | None = 7) -> dict[str, Any]:
    return {"rule": rule, "severity": severity, "fired_step": fired_step, "since_step": 6, "value": 1.0}


APPLIED = {"kind": "set_kl_coef", "state": "applied", "step": 10, "before": 40.0, "after": 4.0}


def told(flavour: str = "unhealthy", **changes: Any) -> Any:
    from demo_verdict import Told

    unhealthy = flavour == "unhealthy"
    summary = {
        "flavour": flavour,
        "run": flavour,
        "steps": 20,
        "beta_before": 40.0,
        "beta_after": 4.0,
        "counters": {"dropped": 0.0},
    }
    facts: dict[str, Any] = {
        "summary": summary | changes.pop("summary", {}),
        "alerts": [alert("truncation", "critical"), alert("kl_pull_dominates")] if unhealthy else [],
        "commands": [APPLIED] if unhealthy else [],
        "stored": 20,
        "pull": [(step, 2.0 if step <= 10 else 0.1) for step in range(1, 21)],
    }
    return Told(**facts | changes)


def broken(one: Any) -> list[str]:
    from demo_verdict import broken_promises

    return list(broken_promises(one))


@pytest.mark.parametrize("flavour", ["unhealthy", "twin"])
def test_nothing_is_broken_when_all_went_well(flavour: str) -> None:
    assert broken(told(flavour)) == []


def test_alerts_for_information_and_those_that_never_fired_break_nothing() -> None:
    quiet = [alert("kl_grad_force", "info"), alert("grad_spike", "warning", fired_step=None)]
    assert broken(told("twin", alerts=quiet)) == []


@pytest.mark.parametrize(
    ("flavour", "changes", "said"),
    [
        ("twin", {"alerts": [alert("grad_spike")]}, "nobody planted: grad_spike"),
        ("unhealthy", {"alerts": [alert("truncation", "critical")]}, "not found: kl_pull_dominates"),
        ("unhealthy", {"stored": 19}, "1 reports were lost"),
        ("twin", {"summary": {"counters": {"dropped": 2.0}}}, "2 reports were lost"),
        ("unhealthy", {"commands": [APPLIED | {"state": "proposed"}]}, "no approved set_kl_coef"),
        ("unhealthy", {"summary": {"beta_after": 40.0}}, "the trainer's beta is 40.0"),
        ("unhealthy", {"pull": [(step, 2.0) for step in range(1, 21)]}, "did not answer"),
        ("unhealthy", {"pull": []}, "did not answer"),
    ],
)
def test_a_broken_promise_is_told(flavour: str, changes: dict[str, Any], said: str) -> None:
    assert any(said in line for line in broken(told(flavour, **changes)))
