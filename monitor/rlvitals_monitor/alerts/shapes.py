"""Which rules can say anything of a step, by the metrics that it has: worked out once for each set of names.

A run reports the same metrics at nearly every step, and most rules need one that it never reports. Such a rule is
unknown and changes nothing, so that it need not be judged again while no alert of its name is open.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from rlvitals.contract.alert import Truth
from rlvitals_monitor.rules.evaluate import Evaluation, lacking
from rlvitals_monitor.rules.rule import Rule

MOST = 64
"""Sets of names that are remembered; a run has a few, such as with and without an evaluation."""

Twins = tuple[Rule, ...]
"""The rules of one alert, the strongest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """``able``: places of the alerts to judge, in order. ``absent``: the verdicts of rules that lack a metric."""

    able: tuple[int, ...]
    absent: Mapping[str, Evaluation]


class Shapes:
    """Made for one sequence of rules, in `judge.order`; ``awake`` are the places of alerts with an open one."""

    __slots__ = ("_known", "_last", "awake", "rules", "twins")

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self.twins: tuple[Twins, ...] = tuple(tuple(group) for _, group in groupby(rules, key=_alert))
        self.awake: set[int] = set()
        self._known: dict[frozenset[str], Shape] = {}
        self._last: Shape | None = None

    def of(self, names: Collection[str]) -> tuple[Shape, bool]:
        """The shape of a step, and whether it is another than the step before had."""
        key = frozenset(names)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST:
                self._known.clear()
            found = self._known[key] = self._make(key)
        is_new, self._last = found is not self._last, found
        return found, is_new

    def places(self, shape: Shape) -> Sequence[int]:
        """The alerts to judge: those that can be, and those that are open."""
        return shape.able if self.awake.issubset(shape.able) else sorted(self.awake.union(shape.able))

    def _make(self, names: frozenset[str]) -> Shape:
        reasons = {rule.key: lacking(rule, names) for rule in self.rules}
        able = (at for at, twins in enumerate(self.twins) if not all(reasons[rule.key] for rule in twins))
        absent = {key: Evaluation(Truth.UNKNOWN, reason) for key, reason in reasons.items() if reason}
        return Shape(able=tuple(able), absent=absent)


def _alert(rule: Rule) -> str:
    return rule.alert
