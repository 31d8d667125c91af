from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.contract import codec
from rlvitals.contract.alert import AlertState
from rlvitals_monitor.alerts.judge import Judgement, judge_step, note_verdicts, order
from rlvitals_monitor.alerts.memory import AttemptMemory, begin, dump, restore, verdicts_of
from rlvitals_monitor.rules.loader import load_rules, load_text
from rlvitals_monitor.rules.rule import Rule
from tests.monitor.rules.judging import NAMES, START, a_rule

INF, NAN = math.inf, math.nan
RULES = order(load_rules())


def through_json(memory: AttemptMemory, rules: Sequence[Rule] = RULES) -> AttemptMemory:
    """As if another process went on."""
    return restore(rules, {}, codec.loads(codec.dumps(dump(memory))))


def judge(rules: Sequence[Rule], memory: AttemptMemory, step: int, values: Mapping[str, float]) -> list[Judgement]:
    return judge_step(rules, memory, step, START + timedelta(seconds=step), values)


def told(judgements: Sequence[Judgement]) -> list[tuple[str, str, int, str]]:
    return [(j.key, j.change.after.value, j.step, str(j.evaluation.value)) for j in judgements]


_VALUES = st.dictionaries(
    st.sampled_from(NAMES),
    st.one_of(st.sampled_from([0.0, 0.5, 1.0, 20.0, NAN, INF, -INF]), st.floats()),
    max_size=20,
)


@settings(max_examples=25, deadline=None)
@given(st.lists(_VALUES, min_size=1, max_size=30), st.data())
def test_a_process_that_dies_between_any_two_steps_changes_nothing(
    steps: list[dict[str, float]], data: st.DataObject
) -> None:
    dies_after = data.draw(st.integers(0, len(steps) - 1))
    one, two = begin(RULES, {}), begin(RULES, {})
    for place, values in enumerate(steps):
        assert told(judge(RULES, one, place, values)) == told(judge(RULES, two, place, values))
        if place == dies_after:
            two = through_json(two)
    assert codec.encode(dump(one)) == codec.encode(dump(two))


def test_infinities_nan_and_nothing_are_kept_apart_in_what_is_remembered() -> None:
    (rule,) = order([a_rule("highest(kl.k3, 2) > 1 and peak(kl.k1) > 0", of="[2, 3]")])
    memory = begin([rule], {})
    for step, values in enumerate(
        [{"kl.k3": INF, "kl.k1": 1.0}, {"kl.k3": -INF, "kl.k1": 2.0}, {"kl.k3": NAN}, {}]
    ):
        judge([rule], memory, step, values)
    kept = json.loads(codec.dumps(dump(memory)))
    assert kept["window"]["rings"] == {"kl.k3": [[0, 1], ["Infinity", "-Infinity"]]}
    again = through_json(memory, [rule])
    assert again.window.dump() == memory.window.dump()
    assert again.rules == memory.rules


def test_a_rule_that_changed_begins_anew_but_keeps_its_open_alert() -> None:
    (old,) = load_text(_TEXT)
    (new,) = load_text(_TEXT.replace("> 1", "> 2"))
    memory = begin([old], {})
    for step in range(30):
        judge([old], memory, step, {"kl.k3": 5.0})
    assert memory.rules["a/warning"].recent
    again = through_json(memory, [new])
    assert again.standings["a/warning"].state is AlertState.FIRING
    assert again.rules["a/warning"].recent == []
    assert again.rules["a/warning"].open
    assert not memory.fits([new])


def test_an_open_alert_of_a_rule_that_is_gone_ends_at_the_next_step() -> None:
    (old,) = load_text(_TEXT)
    memory = begin([old], {})
    for step in range(3):
        judge([old], memory, step, {"kl.k3": 5.0})
    again = through_json(memory, [])
    (end,) = judge([], again, 3, {"kl.k3": 5.0})
    assert (end.key, end.change.after, end.change.reason) == (
        "a/warning",
        AlertState.RESOLVED,
        "the rule was removed",
    )
    assert judge([], again, 4, {}) == []


def test_what_people_see_survives_too() -> None:
    (rule,) = load_text(_TEXT)
    memory = begin([rule], {})
    judge([rule], memory, 1, {"kl.k3": INF})
    note_verdicts([rule], memory)
    verdicts, seen = verdicts_of(codec.loads(codec.dumps(dump(memory))))
    told = verdicts["a/warning"]
    assert (told.metric, told.value, told.threshold) == ("kl.k3", INF, 1.0)
    assert seen == {"kl.k3"}


@pytest.mark.parametrize(
    "broken", [{}, {"format": 99}, {"format": 1, "window": []}, {"format": 1, "window": {}, "rules": 3}]
)
def test_a_memory_that_nobody_wrote_is_refused_by_the_name_of_its_field(broken: dict[str, object]) -> None:
    with pytest.raises(codec.DecodeError, match=r"^memory\."):
        restore(RULES, {}, broken)


def test_a_rule_that_raises_is_unknown_with_its_error_and_silences_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (good,) = load_text(_TEXT)

    def explode(frame: object) -> bool:
        raise ZeroDivisionError("planted")

    bad = replace(good, alert="b", expr=replace(good.expr, truth=explode))
    rules = order([bad, good])
    memory = begin(rules, {})
    changes = [c for step in range(3) for c in judge(rules, memory, step, {"kl.k3": 5.0})]
    note_verdicts(rules, memory)
    assert [c.key for c in changes] == ["a/warning"]
    assert memory.verdicts["b/warning"].reason == "the rule failed: ZeroDivisionError: planted"
    assert "rule b/warning failed at step 0" in caplog.text


_TEXT = """\
groups:
  - name: g
    rules:
      - alert: a
        expr: kl.k3 > 1
        of: [2, 3]
        labels: {severity: warning}
        annotations: {summary: s}
"""
