from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rlvitals.contract.alert import AlertState, Proposal, Truth
from rlvitals.contract.command import CommandKind
from rlvitals_monitor.alerts.judge import Judgement, note_verdicts, order
from rlvitals_monitor.alerts.memory import begin
from rlvitals_monitor.alerts.views import view_catalogue, view_rules
from rlvitals_monitor.rules.loader import load_rules
from tests.monitor.alerts.test_memory import judge

RULES = order(load_rules())


def run(steps: Sequence[Mapping[str, float]], config: Mapping[str, object] | None = None) -> list[Judgement]:
    memory = begin(RULES, config or {})
    return [change for step, values in enumerate(steps, start=1) for change in judge(RULES, memory, step, values)]


PULL = {"kl.pull_ratio": 4.0, "kl.coef": 0.4}
QUIET = {"kl.pull_ratio": 0.1, "kl.coef": 0.4}


def test_the_proposal_of_a_dominating_pull_aims_at_half_the_policy_s_pull() -> None:
    (fired,) = run([QUIET] * 6 + [PULL] * 2)
    assert fired.proposal == Proposal(kind=CommandKind.SET_KL_COEF, argument=0.4 * 0.5 / 4.0)


def test_no_coefficient_is_proposed_while_a_cause_fires_that_it_cannot_cure() -> None:
    one_id = {"kl.grad_top_id_share": 0.99, "kl.grad_max": 1000.0}
    changes = {c.key: c for c in run([QUIET | one_id] * 9 + [PULL | one_id] * 2)}
    assert changes["kl_grad_one_id/critical"].proposal == Proposal(kind=CommandKind.PAUSE)
    assert changes["kl_pull_dominates/warning"].proposal is None


def test_no_coefficient_is_proposed_where_the_same_step_brings_a_nan() -> None:
    changes = {c.key: c for c in run([QUIET] * 6 + [PULL, PULL | {"policy.loss": math.nan}])}
    assert changes["nonfinite/critical"].step == changes["kl_pull_dominates/warning"].step == 8
    assert changes["kl_pull_dominates/warning"].proposal is None


def test_nothing_is_proposed_where_the_argument_is_no_positive_number() -> None:
    for strange in (
        {"kl.pull_ratio": math.inf, "kl.coef": 0.4},
        {"kl.pull_ratio": 4.0},
        {**PULL, "kl.coef": math.nan},
    ):
        (fired,) = run([QUIET] * 6 + [strange] * 2)
        assert (fired.change.after, fired.proposal) == (AlertState.FIRING, None)


def test_an_end_proposes_nothing() -> None:
    changes = run([QUIET] * 6 + [PULL] * 2 + [QUIET] * 5)
    assert [(c.change.after, c.proposal is None) for c in changes] == [
        (AlertState.FIRING, False),
        (AlertState.RESOLVED, True),
    ]


def test_a_dormant_rule_says_why_in_the_trainer_s_own_words() -> None:
    memory = begin(RULES, {})
    judge(RULES, memory, 1, {"reward.mean": 0.5, "policy.loss": 0.1})
    note_verdicts(RULES, memory)
    given = {"kl.pull_ratio": "beta is 0: no reference model is loaded"}
    views = {(v.rule, v.severity.value): v for v in view_rules(RULES, memory.verdicts, memory.window.seen, given)}
    pull, ratio, finite = (
        views["kl_pull_dominates", "warning"],
        views["ratio_extreme", "warning"],
        views["nonfinite", "critical"],
    )
    assert (pull.dormant, pull.truth) == (True, Truth.UNKNOWN)
    assert pull.reason == "kl.pull_ratio: beta is 0: no reference model is loaded"
    assert (ratio.dormant, ratio.reason) == (True, "this run does not report ratio.max")
    assert (finite.dormant, finite.truth) == (False, Truth.INACTIVE)


def test_before_the_first_step_only_a_given_reason_makes_a_rule_dormant() -> None:
    views = {v.rule: v for v in view_rules(RULES, {}, (), {"ratio.max": "one update a batch"})}
    assert (views["ratio_extreme"].dormant, views["ratio_extreme"].reason) == (
        True,
        "ratio.max: one update a batch",
    )
    assert (views["grad_spike"].dormant, views["grad_spike"].reason) == (False, "no step has been judged yet")


def test_a_warm_up_is_unknown_and_not_dormant() -> None:
    memory = begin(RULES, {})
    judge(RULES, memory, 1, QUIET)
    note_verdicts(RULES, memory)
    view = {v.rule: v for v in view_rules(RULES, memory.verdicts, memory.window.seen, {})}["kl_pull_dominates"]
    assert (view.dormant, view.truth, view.reason) == (False, Truth.UNKNOWN, "warm-up: step 1 of 5")


def test_the_catalogue_lists_every_rule_with_its_expression() -> None:
    views = view_catalogue(RULES)
    assert len(views) == len(RULES)
    assert all(view.expr and view.metrics for view in views)
