"""What a KL policy would have decided over a run that is there already: a log's steps, or a stored run's.

The signals are the recorded ones: what a change would have done to them is not known, so the first decision counts
most. The coefficient is the recorded one times what the policy would have made of it, and the KL pull with it, to
which it is proportional at given log-probs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rlvitals.contract.alert import AlertState, Severity
from rlvitals_monitor.alerts.judge import judge_step, order
from rlvitals_monitor.alerts.memory import AttemptMemory, begin
from rlvitals_monitor.alerts.replay import Step
from rlvitals_monitor.control.kl_decision import (
    KlDecision,
    KlSettings,
    Observation,
    OpenAlert,
    holding,
)
from rlvitals_monitor.control.kl_memory import KlMemory
from rlvitals_monitor.control.kl_policies import KlPolicy
from rlvitals_monitor.control.kl_steering import decide
from rlvitals_monitor.rules.rule import Rule


def dry_run(
    policy: KlPolicy,
    series: Iterable[Step],
    settings: KlSettings | None = None,
    *,
    rules: Sequence[Rule] = (),
    config: Mapping[str, object] | None = None,
) -> Iterator[KlDecision]:
    """One decision a step. The user's coefficient is that of ``settings``, else the first ``kl.coef`` of the run.

    ``rules`` say which alerts were open at each step; ``config`` is the run's.
    """
    rehearsal = Rehearsal(policy, settings or KlSettings(users=None), rules, config or {})
    return (rehearsal.see(step) for step in series)


class Rehearsal:
    """A policy beside a run whose coefficient it does not move. Not for use from several threads."""

    def __init__(
        self, policy: KlPolicy, settings: KlSettings, rules: Sequence[Rule], config: Mapping[str, object]
    ) -> None:
        self._policy, self._settings, self._memory = policy, settings, KlMemory()
        self._alerts = OpenAlerts(rules, config)
        self._factor = 1.0

    def see(self, step: Step) -> KlDecision:
        """Steps come in order."""
        number, _, values = step
        recorded = values.get("kl.coef", self._settings.users)
        if self._settings.users is None:
            self._settings = replace(self._settings, users=recorded)
        now = None if recorded is None else recorded * self._factor
        seen = observation(number, values, now, self._alerts.at(step))
        if seen.pull_ratio is not None:
            seen = replace(seen, pull_ratio=seen.pull_ratio * self._factor)
        decision, self._memory = decide(self._policy, self._settings, self._memory, seen)
        if decision.value is not None and recorded:
            self._factor = decision.value / recorded
        return decision


class OpenAlerts:
    """Which alerts of warning or above fire at each step, by the engine that judges live runs."""

    def __init__(self, rules: Sequence[Rule], config: Mapping[str, object]) -> None:
        self._rules = order(rules)
        self._memory: AttemptMemory = begin(self._rules, config)

    def at(self, step: Step) -> frozenset[str]:
        judge_step(self._rules, self._memory, *step)
        opened = (
            OpenAlert(name=key.partition("/")[0], since_step=standing.since_step)
            for key, standing in self._memory.standings.items()
            if standing.state is AlertState.FIRING and Severity(key.partition("/")[2]) is not Severity.INFO
        )
        return holding(opened, step[0])


def observation(
    step: int, values: Mapping[str, float], coefficient: float | None, alerts: frozenset[str]
) -> Observation:
    """A step's metrics, by the registry's names, as a policy sees them."""
    return Observation(
        step=step,
        coefficient=coefficient,
        capped=values.get("kl.capped"),
        k3=values.get("kl.k3"),
        pull_ratio=values.get("kl.pull_ratio"),
        grad_max=values.get("kl.grad_max"),
        reward=values.get("reward.mean"),
        alerts=alerts,
    )
