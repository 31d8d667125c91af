"""Who may steer, and how far, from the environment."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rlvitals.contract.command import Policy
from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.control.settings import ControlSettings


def test_by_default_every_action_waits_for_a_person() -> None:
    settings = ControlSettings()
    assert settings.policies.of("any", "any") is Policy.APPROVE
    assert settings.limits == Limits()


def test_single_rules_and_projects_may_have_their_own_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_POLICY", "observe")
    monkeypatch.setenv("RLVITALS_POLICY_RULES", "kl_pull_dominates=auto, nonfinite=approve")
    monkeypatch.setenv("RLVITALS_POLICY_PROJECTS", "lab=approve")
    policies = ControlSettings().policies
    assert policies.of("kl_pull_dominates", "lab") is Policy.AUTO
    assert policies.of("other", "lab") is Policy.APPROVE
    assert policies.of("other", "else") is Policy.OBSERVE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RLVITALS_POLICY", "yolo"),
        ("RLVITALS_POLICY_RULES", "kl_pull_dominates"),
        ("RLVITALS_AUTOMATIC_FACTOR", "3"),
        ("RLVITALS_AUTOMATIC_FACTOR", "nan"),
        ("RLVITALS_APPROVED_KL_UP", "inf"),
        ("RLVITALS_LONGEST_PAUSE_S", "nan"),
        ("RLVITALS_COOL_DOWN_STEPS", "-1"),
    ],
)
def test_a_setting_that_would_unbind_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError):
        ControlSettings()
