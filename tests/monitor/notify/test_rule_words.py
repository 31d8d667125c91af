"""The built-in rules in Chinese: complete, with their numbers, and nothing but theirs is touched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.contract.report import RunInfo
from rlvitals_monitor.alerts import liveness
from rlvitals_monitor.alerts.shared_silence import ADVICE, SharedSilence
from rlvitals_monitor.diagnosis.table import load_table
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.language import Language
from rlvitals_monitor.notify.notification import tell_one
from rlvitals_monitor.notify.rule_words import rule_words_of, sentences, translate
from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.rules.rule import fill, placeholders
from rlvitals_monitor.store.pulse import Heard, Signs
from tests.monitor.planted import NOW, a_transition, an_alert

CHINESE = re.compile(r"[\u4e00-\u9fff]")


def every_sentence() -> Iterator[str]:
    for rule in load_rules():
        yield from (rule.summary, rule.description)
    for cause in load_table().causes:
        yield from (cause.headline, cause.advice, cause.isnt)
    yield from (rule.advice for rule in liveness.RULES)
    yield from (*LIVENESS, ADVICE)


LIVENESS = (
    "No word from the trainer for {span}; its last step was {step}.",
    "No word from the trainer for {span}; it has made no step.",
    "Alive, but no new step for {span} (phase {phase}); its last step was {step}.",
    "Connected, 0 steps in {span} (phase {phase}): {why}. `rlvitals doctor` in the job's environment tells more; "
    "it has made no step.",
)
"""The forms that these summaries have; a test below looks at real ones."""


def flat(text: str) -> str:
    return " ".join(text.split())


def test_every_sentence_of_the_rules_and_of_the_causes_is_there_and_no_other() -> None:
    assert {flat(text) for text in every_sentence() if text} == set(sentences())


@pytest.mark.parametrize("seen_s", [0.0, 700.0])
@pytest.mark.parametrize("last_step", [None, 42])
def test_what_the_watch_over_trainers_says_is_told_in_chinese(seen_s: float, last_step: int | None) -> None:
    long_ago, silent_since = NOW - timedelta(days=1), NOW - timedelta(seconds=seen_s)
    progress = None if last_step is None else long_ago
    signs = Signs(phase="update", began_at=long_ago, seen_at=silent_since, progress_at=progress, step_s=10.0)
    heard = Heard(run="r1", attempt="t1", attempt_number=1, last_step=last_step, signs=signs)
    shared = SharedSilence(runs=4, first=silent_since - timedelta(seconds=20), last=silent_since)
    found = liveness.judge(heard, (), NOW, long_ago) + liveness.judge(heard, (), NOW, long_ago, None, shared)
    assert found
    for transition in found:
        for text in (transition.alert.summary, transition.alert.advice):
            assert CHINESE.search(translate(text)), text


def test_each_keeps_its_places_and_is_chinese() -> None:
    for english, chinese in sentences().items():
        assert sorted(set(placeholders(english))) == sorted(set(placeholders(chinese)))
        assert CHINESE.search(chinese), english


@pytest.mark.parametrize("value", [0.93, float("nan"), float("inf"), float("-inf"), None])
def test_a_summary_is_told_with_the_number_that_it_came_with(value: float | None) -> None:
    for rule in load_rules():
        told = fill(rule.summary, value, 0.5, 120, "kl.k3")
        shown = translate(told)
        assert CHINESE.search(shown), told
        assert "{" not in shown
        if "{value}" in rule.summary:
            assert ("unknown" if value is None else f"{value:.4g}") in shown
        if "{metric}" in rule.summary:
            assert "kl.k3" in shown


@pytest.mark.parametrize("text", ["My own rule saw 3 things.", "", "{value}", "x" * 5000, "奖励太低了"])
def test_a_rule_of_ones_own_passes_through(text: str) -> None:
    assert translate(text) == text


@given(st.text(max_size=300))
def test_no_text_breaks_it(text: str) -> None:
    assert isinstance(translate(text), str)


def test_a_hostile_metric_within_a_summary_stays_what_it_is() -> None:
    told = fill("A non-finite number reached {metric}.", None, None, 1, "{value}\\1 %s <b>")
    assert translate(told) == "非有限数进入了 {value}\\1 %s <b>。"


def test_english_stays_english() -> None:
    words = rule_words_of(Language.ENGLISH)
    assert words("A non-finite number reached loss.") == "A non-finite number reached loss."


def test_a_chinese_message_says_summary_and_advice_in_chinese() -> None:
    alert = an_alert(
        summary="The KL pull is 3.5 times the policy's own: updates mostly return to the reference.",
        advice="Do not raise the KL coefficient while this is open. See which token it is.",
    )
    note = tell_one(a_transition(alert), RunInfo(id="r1"), id="m1", language=Language.CHINESE)
    message = compose(note)
    assert message.summary == "KL 的拉力是策略自身的 3.5 倍：更新大多只是在回到参考模型。"
    assert message.sections[0].label == "处理办法"
    assert message.sections[0].text.startswith("此告警未恢复期间不要提高 KL 系数")
