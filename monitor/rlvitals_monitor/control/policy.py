"""Decides what becomes of a rule's proposal or a person's request: a command, or a refusal with its name. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum

from rlvitals.contract.alert import AlertState, Proposal, Transition
from rlvitals.contract.command import Command, CommandKind, CommandState, Policy
from rlvitals.contract.view import CommandView, PolicyView
from rlvitals_monitor.control.admission import admit
from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.control.change import bounds_of, nearest
from rlvitals_monitor.control.situation import Refusal, Situation, Why


class Scope(str, Enum):
    """What a policy may be chosen for."""

    PROJECT = "project"
    RULE = "rule"
    RUN = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """Who decides: by run and rule, else by project, else for all. ``approve`` unless the operator says otherwise.

    Of a run's and a rule's the more cautious one holds.
    """

    default: Policy = Policy.APPROVE
    rules: Mapping[str, Policy] = field(default_factory=dict)
    projects: Mapping[str, Policy] = field(default_factory=dict)
    runs: Mapping[str, Policy] = field(default_factory=dict)

    def of(self, rule: str, project: str, run: str = "") -> Policy:
        close = [by[name] for by, name in ((self.rules, rule), (self.runs, run)) if name in by]
        if close:
            return min(close, key=lambda policy: policy.rank)
        return self.projects.get(project, self.default)

    def overlaid(self, chosen: Iterable[PolicyView]) -> Policies:
        """With what was chosen while the service runs."""
        by: dict[str, dict[str, Policy]] = {
            Scope.RULE: dict(self.rules),
            Scope.PROJECT: dict(self.projects),
            Scope.RUN: dict(self.runs),
        }
        for view in chosen:
            by[view.scope][view.name] = view.policy
        return replace(self, rules=by[Scope.RULE], projects=by[Scope.PROJECT], runs=by[Scope.RUN])

    def views(self) -> tuple[PolicyView, ...]:
        """What the service's own settings say."""
        scopes = ((Scope.PROJECT, self.projects), (Scope.RULE, self.rules), (Scope.RUN, self.runs))
        own = [
            PolicyView(scope=scope.value, name=name, policy=policy)
            for scope, table in scopes
            for name, policy in table.items()
        ]
        return (PolicyView(scope="default", name="", policy=self.default), *own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Who proposes and why. The same ``source`` proposes the same command; ``at`` is when its reason held."""

    source: str
    who: str
    why: str
    at: datetime

    @staticmethod
    def of(transition: Transition) -> Cause:
        """A rule whose alert changed."""
        alert = transition.alert
        return Cause(source=transition.id, who=f"rule:{alert.rule}", why=alert.summary, at=transition.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A command and the state in which it begins its life; ``note`` says why a person is asked after all."""

    command: Command
    state: CommandState
    note: str = ""


def decide(
    transition: Transition, situation: Situation, policy: Policy, limits: Limits, now: datetime
) -> Decision | Refusal:
    """What becomes of the proposal that rides on ``transition``."""
    proposal = transition.alert.proposal
    if proposal is None:
        return Refusal(why=Why.NOTHING_PROPOSED, detail=f"the rule {transition.alert.rule} proposes no action")
    if transition.after is not AlertState.FIRING:
        return Refusal(why=Why.NOT_FIRING, detail=f"the alert is {transition.after.value}")
    return judge(Cause.of(transition), proposal, situation, policy, limits, now)


def judge(
    cause: Cause, proposal: Proposal, situation: Situation, policy: Policy, limits: Limits, now: datetime
) -> Decision | Refusal:
    """What becomes of a proposal, whoever made it: a rule whose alert fires, or a KL policy at a step.

    Of a larger change than one command may make, as much is proposed as it may.
    """
    refused, note = admit(proposal, situation, limits), ""
    if refused is not None and refused.why is Why.CHANGE:
        wanted, proposal = proposal, nearest(proposal, situation, limits)
        refused, note = admit(proposal, situation, limits), f"{wanted.argument:g} was wanted; {refused}"
    refusal = (
        _fresh(cause, limits, now)
        or refused
        or _settled(proposal.kind, situation, policy, limits, now)
        or _within_budget(situation, limits)
    )
    if refusal is not None:
        return refusal
    issued = _issue(cause, proposal, situation, policy, limits, now)
    return replace(issued, note="; ".join(said for said in (issued.note, note) if said))


def argument_of(proposal: Proposal, limits: Limits) -> float | None:
    """A pause without an argument may last as long as a pause may."""
    if proposal.kind is CommandKind.PAUSE and proposal.argument is None:
        return limits.longest_pause_s
    return proposal.argument


def command_id(source: str) -> str:
    """The same id for the same transition: proposing twice proposes once."""
    return hashlib.sha256(f"command\n{source}".encode()).hexdigest()[:32]


def _issue(
    cause: Cause,
    proposal: Proposal,
    situation: Situation,
    policy: Policy,
    limits: Limits,
    now: datetime,
) -> Decision:
    state, note = _first_state(proposal, situation, policy, limits)
    open_s = limits.delivery_open_s if state is CommandState.PENDING else limits.proposal_open_s
    command = Command(
        id=command_id(cause.source),
        kind=proposal.kind,
        argument=argument_of(proposal, limits),
        bounds=bounds_of(proposal, situation, limits, automatic=state is CommandState.PENDING),
        expires_at=now + timedelta(seconds=open_s),
        who=cause.who,
        why=cause.why,
        knob=proposal.knob,
    )
    return Decision(command=command, state=state, note=note)


def _first_state(
    proposal: Proposal, situation: Situation, policy: Policy, limits: Limits
) -> tuple[CommandState, str]:
    """``auto`` stops and asks beyond its bounds and its budget: an unattended run gets no half of a remedy."""
    if policy is Policy.OBSERVE:
        return CommandState.OBSERVED, "observed only: this is what would have been done"
    if policy is Policy.APPROVE:
        return CommandState.PROPOSED, ""
    if limits.persons(proposal.kind, situation.project) > 1:
        return CommandState.PROPOSED, "two people must approve it, so nothing was done automatically"
    narrow = bounds_of(proposal, situation, limits, automatic=True)
    argument = argument_of(proposal, limits)
    if narrow is not None and argument is not None and not narrow.allow(argument):
        return CommandState.PROPOSED, f"{argument:g} is beyond the automatic {narrow.low:g} … {narrow.high:g}"
    if _automatic_changes(situation) >= limits.automatic_changes:
        return CommandState.PROPOSED, f"{limits.automatic_changes} automatic changes were made already"
    return CommandState.PENDING, ""


def proposed(command: CommandView) -> bool:
    """Whether a rule or a KL policy thought of it, not a person."""
    return bool(command.rule) or command.who.startswith("policy:")


def _automatic_changes(situation: Situation) -> int:
    applied = [c for c in situation.history if c.state is CommandState.APPLIED]
    return sum(1 for c in applied if proposed(c) and not c.decided_by)


def _fresh(cause: Cause, limits: Limits, now: datetime) -> Refusal | None:
    age_s = (now - cause.at).total_seconds()
    if age_s > limits.proposal_open_s:
        return Refusal(why=Why.EXPIRED, detail=f"its reason arose {age_s:.0f} s ago, so the remedy is stale")
    return None


def _settled(
    kind: CommandKind, situation: Situation, policy: Policy, limits: Limits, now: datetime
) -> Refusal | None:
    """Lets the last change of this kind show its effect. What was only observed counts among the observed."""
    past = [c for c in situation.history if c.kind is kind and _counts(c, policy)]
    if not past:
        return None
    last = past[-1]
    waited_s = (now - (last.done_at or last.decided_at or last.created_at)).total_seconds()
    if waited_s < limits.cool_down_s:
        return Refusal(
            why=Why.COOL_DOWN, detail=f"{waited_s:.0f} of {limits.cool_down_s:.0f} s since the last one"
        )
    step = last.asked_step if last.step is None else last.step
    since = None if step is None or situation.step is None else situation.step - step
    if since is not None and 0 <= since < limits.cool_down_steps:
        detail = f"{since} of {limits.cool_down_steps} steps since the last one"
        return Refusal(why=Why.COOL_DOWN, detail=detail)
    return None


def _counts(past: CommandView, policy: Policy) -> bool:
    return policy is Policy.OBSERVE or past.state is not CommandState.OBSERVED


def _within_budget(situation: Situation, limits: Limits) -> Refusal | None:
    made = sum(1 for c in situation.history if proposed(c))
    if made < limits.proposals:
        return None
    return Refusal(why=Why.BUDGET, detail=f"{made} commands of this kind were proposed for this run already")
