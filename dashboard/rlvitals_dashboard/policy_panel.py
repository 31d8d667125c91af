"""Who may steer what, as people see it and choose it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from dash import html

from rlvitals.contract.command import Policy
from rlvitals.contract.steering import SteeringView
from rlvitals.contract.view import PolicyView
from rlvitals_dashboard.asking import ask_once, do, say, say_number, subject_of
from rlvitals_dashboard.components import LONGEST_NAME, Component, mark, visible, when
from rlvitals_dashboard.language import phrase, t
from rlvitals_dashboard.line_table import line_table
from rlvitals_dashboard.theme import POLICIES
from rlvitals_dashboard.words import number

MEANINGS = {
    Policy.OBSERVE: phrase("what would have been done is written down, and nothing is done"),
    Policy.APPROVE: phrase("a person decides on each proposal"),
    Policy.AUTO: phrase("proposals within the automatic bounds are done without asking"),
}
_ORDER = ("default", "project", "rule", "run")
SCOPES = {"project": phrase("project"), "rule": phrase("rule"), "run": phrase("run")}


KL_POLICIES = ("guarded", "target-tracking", "gradient-guard", "article", "none")


def scope_word(scope: str) -> str:
    known = SCOPES.get(scope)
    return t(known) if known else scope


def steering_table(choices: Sequence[SteeringView]) -> Component:
    """Which KL policy is at the wheel, where one was chosen."""
    if not choices:
        return html.P(t("No KL policy steers a run: what is proposed comes from rules alone."), className="quiet")
    names = (t("For"), t("Name"), t("KL policy"), t("Set by"), html.Span(t("Deed"), className="unseen"))
    return line_table(t("KL policies in force"), names, [_steering(choice) for choice in choices])


def _steering(choice: SteeringView) -> Component:
    own = ", ".join(f"{name} {number(value)}" for name, value in choice.settings.items() if _is_number(value))
    words = t("The wheel is free again: from the next step on no KL policy asks for anything there.")
    back = do(t("Yes, take it back"), "take-steering-back", subject_of(choice.scope, choice.name))
    warning = html.Div(visible(choice.warning, 300), className="muted") if choice.warning else None
    return html.Tr(
        [
            html.Td(scope_word(choice.scope)),
            html.Td(visible(choice.name, LONGEST_NAME)),
            html.Td([html.B(choice.kl_policy), f" ({own})" if own else "", warning], className="detail"),
            html.Td([*visible(choice.changed_by or t("somebody"), LONGEST_NAME), ", ", when(choice.changed_at)]),
            html.Td(ask_once(t("Take back"), words, back)),
        ]
    )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def new_steering() -> list[Component]:
    holders = {"run": t("its id"), "project": t("its name")}
    return [_steer(scope, holder) for scope, holder in holders.items()]


def _steer(scope: str, holder: str) -> Component:
    answers = [do(name, "steer", subject_of(scope, name), tone="") for name in KL_POLICIES]
    fields = [
        say("steer", scope, "name", scope.capitalize(), holder=holder),
        say_number("steer", scope, t("Target"), None, hint=t("KL per token in nats; empty: the run's own")),
    ]
    words = t(
        "From the next step on it asks for changes of the KL coefficient, as this page's "
        "policies let it: observed, waiting for approval, or done. guarded is the "
        "recommended one."
    )
    return ask_once(
        t("Steer a {scope}", scope=t(SCOPES[scope])),
        words,
        html.Div([*fields, html.Div(answers, className="buttons")]),
    )


def policy_table(policies: Sequence[PolicyView]) -> Component:
    rows = sorted(policies, key=lambda p: (_place(p.scope), p.name))
    names = (t("For"), t("Name"), t("Policy"), t("Set by"), html.Span(t("Deed"), className="unseen"))
    return line_table(t("Policies"), names, [_row(policy) for policy in rows])


def _place(scope: str) -> int:
    return _ORDER.index(scope) if scope in _ORDER else len(_ORDER)


def _row(policy: PolicyView) -> Component:
    return html.Tr(
        [
            html.Td(t("every run") if policy.scope == "default" else scope_word(policy.scope)),
            html.Td(visible(policy.name, LONGEST_NAME) if policy.name else "–"),
            html.Td(
                [mark(POLICIES[policy.policy]), html.Span(f" {t(MEANINGS[policy.policy])}", className="muted")],
                className="detail",
            ),
            html.Td(_said_by(policy)),
            html.Td(_take_back(policy)),
        ]
    )


def _said_by(policy: PolicyView) -> list[Component]:
    if not policy.chosen:
        return [t("the service's settings")]
    since = [", ", when(policy.changed_at)] if policy.changed_at is not None else []
    return [*visible(policy.changed_by or t("somebody"), LONGEST_NAME), *since]


def _take_back(policy: PolicyView) -> Component:
    if not policy.chosen:
        return None
    words = t("What the service's own settings say holds again.")
    return ask_once(
        t("Take back"),
        words,
        do(t("Yes, take it back"), "take-policy-back", subject_of(policy.scope, policy.name)),
    )


def new_policy() -> list[Component]:
    """For each scope one question; the policies are the answers to it."""
    holders = {"run": t("its id"), "rule": t("its name, or policy:guarded"), "project": t("its name")}
    return [_for(scope, holder) for scope, holder in holders.items()]


def _for(scope: str, holder: str) -> Component:
    answers = [do(POLICIES[p].said, "choose-policy", subject_of(scope, p.value), tone="") for p in Policy]
    act = html.Div(
        [say("choose-policy", scope, "name", scope.capitalize(), holder=holder), *answers], className="row"
    )
    words = t(
        "From now on this holds over the service's own settings, until it is taken back. Administrators can."
    )
    return ask_once(t("For a {scope}", scope=t(SCOPES[scope])), words, act)
