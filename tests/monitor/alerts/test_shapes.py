"""Leaving out rules that lack their metrics changes no verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone

from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals_monitor.alerts.judge import judge_step, order
from rlvitals_monitor.alerts.memory import AttemptMemory, begin
from rlvitals_monitor.alerts.shapes import MOST, Shape, Shapes
from rlvitals_monitor.rules.loader import load_rules

RULES = order(load_rules())
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
NAMES = sorted({name for rule in RULES for name in rule.expr.metrics})
VALUES = st.sampled_from((0.0, 0.5, 1.0, 3.0, 1e4, -1.0, math.nan, math.inf, -math.inf))


class EveryAlert(Shapes):
    """Judges every alert at every step, as if each might speak."""

    def places(self, shape: Shape) -> Sequence[int]:
        return range(len(self.twins))


def course(memory: AttemptMemory, steps: Sequence[Mapping[str, float]]) -> list[str]:
    found = []
    for at, values in enumerate(steps, 1):
        changes = judge_step(RULES, memory, at, START + timedelta(seconds=at), values)
        found += [repr((c.key, c.change, c.step, c.opened_step, c.evaluation)) for c in changes]
        found.append(repr(sorted(memory.evaluations.items())))
    return found


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_rules_that_lack_a_metric_may_be_passed_over(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=12, unique=True))
    steps = data.draw(st.lists(st.dictionaries(st.sampled_from(names), VALUES), min_size=1, max_size=25))
    plain = begin(RULES, {})
    plain.shapes = EveryAlert(RULES)
    assert course(begin(RULES, {}), steps) == course(plain, steps)


def test_an_open_alert_is_judged_on_without_its_metric() -> None:
    memory = begin(RULES, {})
    judge_step(RULES, memory, 1, START, {"gradient.norm": math.nan})
    assert memory.shapes is not None
    place = next(at for at, twins in enumerate(memory.shapes.twins) if twins[0].alert == "nonfinite")
    judge_step(RULES, memory, 2, START + timedelta(seconds=1), {"policy.entropy": 1.0})
    shape, _ = memory.shapes.of({"policy.entropy"})
    assert place in memory.shapes.places(shape)


def test_names_that_change_at_every_step_fill_no_memory() -> None:
    shapes = Shapes(RULES)
    for at in range(3 * MOST):
        shapes.of({f"own.{at}"})
    assert len(shapes._known) <= MOST
