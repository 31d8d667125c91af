"""``rlvitals control steer`` and ``effect``: which KL policy steers what, and what a command did to its run."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone
from typing import Any

from rlvitals.contract.steering import EffectView, SteeredView, SteeringView
from rlvitals.screen import print_report, printable
from rlvitals_monitor.control import kl_choices
from rlvitals_monitor.control.effects import effect_of
from rlvitals_monitor.control.kl_policies import POLICIES
from rlvitals_monitor.control.local_store import command_line_user, on_store
from rlvitals_monitor.control.settings import ControlSettings
from rlvitals_monitor.errors import BadRequest
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.steering import NOBODY, PROJECT, RUN

ABOUT = "which KL policy steers a run or a project's runs: show it, choose it, or take a choice back"
NOTE = (
    "A running service follows at once. What the policy wants becomes a command as any rule's proposal does: "
    "`rlvitals control policy set rule policy:guarded auto` lets it act by itself. Policies: "
)


def add(actions: Any) -> None:
    told = NOTE + "; ".join(f"{p.name} {p.says}" for p in POLICIES.values()) + "."
    steer = actions.add_parser("steer", help=ABOUT, description=ABOUT + ".", epilog=told)
    steer.add_argument("run", nargs="?", help="a run's id; without one, all that is chosen")
    steer.add_argument("--project", help="the project's runs, in place of one run")
    what = steer.add_mutually_exclusive_group()
    what.add_argument("--policy", choices=[*POLICIES, NOBODY], help="choose it; none: nobody steers this run")
    what.add_argument("--off", action="store_true", help="take the choice back")
    steer.add_argument("--target", type=float, help="KL per token in nats, in place of the run's own kl_target")
    steer.add_argument("--factor", type=float, help="the whole way from the user's coefficient, at most 2")
    steer.add_argument("--change-steps", type=int, help="from one change to the next")
    steer.set_defaults(act=lambda told: on_store(lambda store: _steer(store, told)))
    effect = actions.add_parser("effect", help="what an applied command did to its run, by a stated test")
    effect.add_argument("command", help="its id")
    effect.set_defaults(act=lambda told: on_store(lambda store: _effect(store, told.command)))


def _steer(store: Store, told: argparse.Namespace) -> int:
    if told.run and told.project:
        raise BadRequest("expected a run or --project, not both")
    scope, name = (PROJECT, told.project) if told.project else (RUN, told.run)
    if name is None:
        if told.policy or told.off:
            raise BadRequest("expected a run's id, or --project")
        return _list(store)
    own = {"target": told.target, "factor": told.factor, "change_steps": told.change_steps}
    who, now = command_line_user(), datetime.now(timezone.utc)
    if told.policy:
        with store.begin() as conn:
            kl_choices.choose(conn, scope, name, told.policy, own, who, now)
    elif told.off:
        with store.begin() as conn:
            kl_choices.take_back(conn, scope, name, who, now)
    elif any(value is not None for value in own.values()):
        raise BadRequest("expected --policy beside --target, --factor and --change-steps")
    return _list(store) if scope == PROJECT else _show(store, name)


def _list(store: Store) -> int:
    with store.read() as conn:
        found = kl_choices.in_force(conn)
    rows = [choice_line(choice) for choice in found] or ["no KL policy is chosen for any run or project"]
    return print_report("\n".join(rows) + "\n", "rlvitals control", 0)


def _show(store: Store, run: str) -> int:
    limits = ControlSettings(policy=Settings().policy).limits
    with store.read() as conn:
        found = kl_choices.steered(conn, run, limits)
    return print_report(steered_text(found), "rlvitals control", 0)


def _effect(store: Store, command: str) -> int:
    with store.read() as conn:
        found = effect_of(conn, command)
    return print_report(effect_text(found), "rlvitals control", 0)


def choice_line(choice: SteeringView) -> str:
    own = "".join(f" {key}={value:g}" for key, value in choice.settings.items() if isinstance(value, (int, float)))
    by = printable(choice.changed_by)
    return f"{choice.scope:8} {printable(choice.name):32} {choice.kl_policy:16} chosen by {by}{own}"


def steered_text(found: SteeredView) -> str:
    """For a terminal; a rule that turns the wrong way is never shown without its warning."""
    choice = found.choice
    if choice is None:
        return f"no KL policy steers {printable(found.run)}\n"
    out = [choice_line(choice)]
    if choice.warning:
        out.append(f"WARNING: {choice.warning}. The recommended policy is `guarded`.")
    if found.low is not None and found.high is not None:
        out.append(f"between {found.low:.4g} and {found.high:.4g}")
    if found.step is None:
        out.append("it has seen no step of this attempt yet")
    else:
        did = f"hold ({found.why})" if found.value is None else f"{found.why} to {found.value:.4g}"
        out.append(f"step {found.step}: {did}: {printable(found.reason)}")
    if found.stopped:
        out.append(f"stopped: {printable(found.stopped)}. Choosing it again lets it go on.")
    return "\n".join(out) + "\n"


def effect_text(found: EffectView) -> str:
    out = [f"{found.verdict}: {printable(found.reason)}"]
    if found.first is not None and found.last is not None:
        out.append(f"applied at step {found.step}; steps {found.first} to {found.last} were looked at")
    out += [f"  {s.metric:16} {_number(s.before)} → {_number(s.after)}  {s.turn}" for s in found.signals]
    return "\n".join(out) + "\n"


def _number(value: float | None) -> str:
    return f"{'missing':>10}" if value is None else f"{value:>10.4g}"
