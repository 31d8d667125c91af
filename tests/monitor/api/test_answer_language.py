"""Whoever asks in Chinese is told the rules' sentences in Chinese, with the numbers and names as they are."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from itertools import product
from types import MappingProxyType
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals.contract.alert import Severity
from rlvitals.contract.report import RunInfo
from rlvitals_monitor.api.answer_language import spoken, told
from rlvitals_monitor.comparison.parting import WIDTH
from rlvitals_monitor.incidents.evidence_words import in_chinese
from rlvitals_monitor.notify.language import Language
from rlvitals_monitor.notify.rule_words import numbers, reasons, translate
from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.rules.rule import placeholders
from rlvitals_monitor.store import pulse
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.pulse import Signs
from rlvitals_monitor.worker import Worker
from tests.monitor.batches import NOW, batch, step

CHINESE = re.compile(r"[\u4e00-\u9fff]")
ASKED = MappingProxyType({"accept-language": "zh-CN,zh;q=0.9,en;q=0.5"})
NAME = "all quiet"
"""A run that is called like a sentence of ours."""


@pytest.fixture
def judged(app: FastAPI) -> None:
    rows = [{"policy.loss": 0.1}] * 3 + [{"policy.loss": math.nan}, {"policy.loss": math.inf}]
    reports = [step(n, n, row) for n, row in enumerate(rows, start=1)]
    with app.state.store.begin() as connection:
        store_batch(connection, batch(*reports, attempt="a1", info=RunInfo(id="r1", name=NAME)), NOW)
    Worker(app.state.store).tick(NOW)


@pytest.mark.usefixtures("judged")
def test_an_alert_is_told_in_the_language_that_is_asked_for(client: TestClient) -> None:
    (english,) = client.get("/api/v1/alerts").json()["items"]
    (chinese,) = client.get("/api/v1/alerts", headers=ASKED).json()["items"]
    assert not CHINESE.search(english["summary"] + english["advice"])
    assert CHINESE.search(chinese["summary"])
    assert CHINESE.search(chinese["advice"])
    words = ("summary", "advice")
    assert {k: v for k, v in chinese.items() if k not in words} == {
        k: v for k, v in english.items() if k not in words
    }


@pytest.mark.usefixtures("judged")
def test_a_light_its_reason_and_an_incident_are_told_in_chinese_and_a_name_as_it_is(client: TestClient) -> None:
    run = client.get("/api/v1/runs/r1", headers=ASKED).json()
    assert CHINESE.search(run["reason"])
    assert run["name"] == NAME
    (incident,) = client.get("/api/v1/runs/r1/incidents", headers=ASKED).json()
    assert CHINESE.search(incident["headline"] + incident["advice"])


@pytest.mark.usefixtures("judged")
def test_a_value_that_is_no_number_is_told_the_same_in_any_language(client: TestClient) -> None:
    points = {}
    for headers in ({}, ASKED):
        answer = client.get("/api/v1/runs/r1/series", params={"metric": "policy.loss"}, headers=dict(headers))
        assert answer.status_code == 200
        points[len(headers)] = answer.json()
    assert points[0] == points[1]
    assert "NaN" in str(points[0])


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", None, 0.5])
def test_only_sentences_of_ours_in_fields_of_ours_are_translated(value: Any) -> None:
    answer = {"reason": "finished", "name": "finished", "value": value, "why": [{"summary": "of my own"}]}
    token = spoken.set(Language.CHINESE)
    try:
        found = told(answer)
    finally:
        spoken.reset(token)
    assert found == answer | {"reason": "已完成"}
    assert told(answer) is answer


def test_the_severity_within_a_reason_is_translated_too() -> None:
    assert translate("2 alerts firing: kl_drift is critical") == "2 条告警触发中：kl_drift 为严重"


def test_why_a_rules_number_is_what_it_is_is_told_for_every_rule_of_ours_and_for_no_other() -> None:
    assert {" ".join(rule.reason.split()) for rule in load_rules() if rule.reason} == set(numbers())
    assert all(CHINESE.search(chinese) for chinese in numbers().values())


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("kl_drift from step 7", "kl_drift 自第 7 步起"),
        ("nan from step 7: policy.loss = NaN", "nan 自第 7 步起：policy.loss = NaN"),
        ("r from step 7: a.b = +Inf (fires above 10)", "r 自第 7 步起：a.b = +Inf（高于 10 时触发）"),
        (
            "r from step 7: mean(a.b, 5) = -Inf (fires below -2e-05)",
            "r 自第 7 步起：mean(a.b, 5) = -Inf（低于 -2e-05 时触发）",
        ),
        (
            "r from step 7: a - b = 1.5 (threshold 1), token id 5 'at position' at position 3 of sample 2 "
            "under the loss mask",
            "r 自第 7 步起：a - b = 1.5（阈值 1），token id 5 'at position' 位置 3 样本 2 在损失掩码内",
        ),
        ("what a person wrote", "what a person wrote"),
    ],
)
def test_evidence_is_told_with_its_names_numbers_and_tokens_as_they_are(english: str, chinese: str) -> None:
    assert in_chinese(english) == chinese


def test_each_reason_keeps_its_places_and_is_chinese() -> None:
    for english, chinese in reasons().items():
        assert sorted(set(placeholders(english))) == sorted(set(placeholders(chinese)))
        assert CHINESE.search(chinese), english


def test_every_reason_of_a_light_has_its_chinese() -> None:
    phases = ("starting", "rollout", "update", "evaluating", "paused", "finished", "failed")
    ages = (0, 5, 700, 90_000)
    for phase, seen, progress, firing, stop in product(phases, ages, (None, *ages), (0, 1, 3), (False, True)):
        signs = Signs(
            phase=phase,
            began_at=NOW - timedelta(days=2),
            seen_at=NOW - timedelta(seconds=seen),
            progress_at=None if progress is None else NOW - timedelta(seconds=progress),
            step_s=None if progress is None else 10.0,
            steps=0 if progress is None else 100,
            firing=(Severity.CRITICAL,) * firing,
            worst_rule="kl_explosion",
            stop_applied=stop,
        )
        reason = pulse.take(signs, NOW).reason
        assert CHINESE.search(translate(reason)), reason


@pytest.mark.parametrize(
    "words",
    [
        f"further apart than {WIDTH:g} times the noise of both",
        "NaN where the first run has +Inf, and together again at the end",
        "equal in all 1,600 common points",
        "a band needs two other runs of the project with 50 steps or more without a warning, and it has 0",
    ],
)
def test_what_a_comparison_says_is_told_in_chinese(words: str) -> None:
    token = spoken.set(Language.CHINESE)
    try:
        found = told({"reason": words, "counted": "optimizer steps"})
    finally:
        spoken.reset(token)
    assert CHINESE.search(found["reason"])
    assert "the" not in found["reason"]
    assert found["counted"] == "优化器步"
