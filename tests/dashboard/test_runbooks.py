from __future__ import annotations

import re
from pathlib import Path

import pytest

from rlvitals_dashboard.alert_panel import runbook_link
from rlvitals_dashboard.runbooks import read_runbook, runbook_of
from rlvitals_monitor.rules.loader import load_rules

PROJECT = Path(__file__).parents[2]


def test_every_rule_that_comes_with_the_service_has_a_runbook_that_is_shown() -> None:
    for rule in load_rules():
        text = read_runbook(runbook_of(rule.runbook))
        assert "## What to check" in text, rule.key
        assert not re.search(r"!\[|<!--|\]\((?!https?://)", text), rule.key


@pytest.mark.parametrize(
    "path",
    [
        "docs/runbooks/answers_too_long.md",
        "docs/runbooks/../../secret.md",
        "/etc/passwd",
        "javascript:alert(1)",
        "",
    ],
)
def test_what_did_not_come_with_the_rules_is_no_link(path: str) -> None:
    assert runbook_of(path) == ""
    assert runbook_link(path) == []
    assert read_runbook(path) == ""


def test_the_runbooks_travel_with_the_package_and_into_the_image() -> None:
    assert '"docs/runbooks" = "rlvitals_dashboard/runbooks"' in (PROJECT / "pyproject.toml").read_text("utf-8")
    assert "COPY docs/runbooks docs/runbooks" in (PROJECT / "Dockerfile").read_text("utf-8")
