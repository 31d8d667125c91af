"""Which alerts a channel hears of, by patterns over the run and the alert."""

from __future__ import annotations

import pytest

from rlvitals.contract.report import RunInfo
from rlvitals_monitor.matcher import Matcher
from tests.monitor.planted import an_alert

RUN = RunInfo(
    id="r1", name="tiny [x]", project="math-7b", framework="verl", model="Qwen/Qwen3-8B", tags=("a", "prod")
)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("project=math-7b", True),
        ("project=math-*", True),
        ("project=Math-*", False),
        ("project!=math-*", False),
        ("project!=code-*", True),
        ("run=r1", True),
        ("run=tiny*", True),
        ("run!=r1", False),
        ("rule=kl_*", True),
        ("rule!=kl_*", False),
        ("metric=kl.pull_ratio", True),
        ("severity=warning", True),
        ("severity=critical", False),
        ("framework=verl", True),
        ("model=Qwen/*", True),
        ("tag=prod", True),
        ("tag=p?od", True),
        ("tag=test", False),
        ("tag!=test", True),
        ("tag!=prod", False),
        (" rule = kl_* ", True),
    ],
)
def test_a_matcher_holds_of_what_it_names(text: str, holds: bool) -> None:
    assert Matcher.read(text).matches(an_alert(), RUN) is holds


def test_a_run_without_tags_has_none() -> None:
    assert not Matcher.read("tag=*").matches(an_alert(), RunInfo(id="r1"))
    assert Matcher.read("tag!=prod").matches(an_alert(), RunInfo(id="r1"))


@pytest.mark.parametrize("text", ["", "project", "project=", "colour=red", "=x", "project~x"])
def test_what_is_no_matcher_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected FIELD=PATTERN"):
        Matcher.read(text)
