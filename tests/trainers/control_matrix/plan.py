"""What is tried: each verb, under each policy, at each moment of a step, and when the service is killed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rlvitals.contract.command import CommandKind, Policy

SIZES = (1, 2)
MOMENTS = ("rollout", "update", "eval", "checkpoint")
POLICIES = (Policy.OBSERVE, Policy.APPROVE, Policy.AUTO)
_NAMES = ("set_kl_coef", "scale_lr", "set_knob", "checkpoint", "pause", "resume", "stop")
VERBS = tuple(CommandKind(name) for name in _NAMES)
"""In the order in which a run meets them."""
OF_PEOPLE = frozenset({CommandKind.RESUME, CommandKind.SET_KNOB})
"""No rule proposes them: a run that stands sends no step that one could judge, and no rule knows a run's knobs."""
ARGUMENTS = {CommandKind.SET_KL_COEF: "kl.coef * 0.6", CommandKind.SCALE_LR: "0.7"}
KILLED = ("asked", "delivered", "applied")
"""The service dies right after the command was made, when the trainer has it, or while it is being applied."""
STEPS = 2 * len(VERBS) + 1
BETA, RATE = 0.5, 1e-2
KNOB, NORM, TURNED = "max_grad_norm", 1.0, 0.01
"""The trainer's own argument that is a knob here: before, and after a person turned it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A command that arrives during ``moment`` when ``step`` steps are done; the next boundary is a step later."""

    run: str
    size: int
    policy: Policy
    moment: str
    verb: CommandKind
    step: int
    killed: str

    @property
    def rule(self) -> str:
        return rule_of(self.verb)

    @property
    def boundary(self) -> int:
        return self.step + 1

    @property
    def is_obeyed(self) -> bool:
        return self.policy is not Policy.OBSERVE or self.verb in OF_PEOPLE


def rule_of(verb: CommandKind) -> str:
    return f"matrix_{verb.value}"


def step_of(verb: CommandKind) -> int:
    return 1 + 2 * VERBS.index(verb)


def run_id(policy: Policy, moment: str, size: int) -> str:
    return f"{policy.value}-{moment}-{size}"


def slots(policy: Policy, moment: str, size: int) -> Iterator[Slot]:
    """In the order of their steps. Over a verb's moments, policies and sizes each kill has its turn."""
    turn = MOMENTS.index(moment) + POLICIES.index(policy) + SIZES.index(size)
    for place, verb in enumerate(VERBS):
        yield Slot(
            run=run_id(policy, moment, size),
            size=size,
            policy=policy,
            moment=moment,
            verb=verb,
            step=step_of(verb),
            killed=KILLED[(turn + place) % len(KILLED)],
        )


def rules() -> str:
    """A rule for each verb that fires on one step, as YAML."""
    lines = ["groups:", "  - name: matrix", "    rules:"]
    for verb in VERBS:
        if verb in OF_PEOPLE:
            continue
        argument = f", argument: {ARGUMENTS[verb]}" if verb in ARGUMENTS else ""
        lines += [
            f"      - alert: {rule_of(verb)}",
            f"        expr: step == {step_of(verb)}",
            "        labels: {severity: warning}",
            "        annotations: {summary: 'It is time.'}",
            f"        action: {{command: {verb.value}{argument}}}",
        ]
    return "\n".join(lines) + "\n"
