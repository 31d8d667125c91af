"""Which KL policy steers which runs, as people chose it: each choice is audited, and told with what it does."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection

from rlvitals.contract import codec
from rlvitals.contract.steering import SteeredView, SteeringView
from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.control.kl_decision import KlChoice, KlDecision, KlSettings
from rlvitals_monitor.control.kl_policies import POLICIES
from rlvitals_monitor.control.steer import Remembered
from rlvitals_monitor.errors import BadRequest, NotFound
from rlvitals_monitor.store import steering
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.commands import Subject, read_subject
from rlvitals_monitor.store.runs import no_run
from rlvitals_monitor.store.steering import NOBODY, RUN, SCOPES, Choice


def in_force(conn: Connection) -> tuple[SteeringView, ...]:
    """Projects first, then runs, by name."""
    return tuple(_view(choice) for choice in steering.choices(conn))


def choose(
    conn: Connection, scope: str, name: str, kl_policy: str, own: Mapping[str, object], who: str, now: datetime
) -> SteeringView:
    """From the next step on. Whoever chooses a policy that stopped itself lets it go on.

    Raises BadRequest (an unknown policy, a setting) or NotFound (a run).
    """
    if scope not in SCOPES:
        raise BadRequest(f"expected one of {', '.join(SCOPES)}, got {scope!r}", field="scope")
    known = [*POLICIES, NOBODY]
    if kl_policy not in known:
        raise BadRequest(f"expected one of {', '.join(known)}, got {kl_policy!r}", field="kl_policy")
    if scope == RUN and read_subject(conn, name) is None:
        raise no_run(conn, name)
    given = {key: value for key, value in own.items() if value is not None}
    try:
        KlChoice(**given)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise BadRequest(str(error), field="settings") from error
    made = steering.choose(conn, scope, name, kl_policy, given, who, now)
    shown = "".join(f", {key} {value:g}" for key, value in given.items() if isinstance(value, (int, float)))
    detail = f"{scope} {name}: {kl_policy}{shown}"
    append_audit(conn, at=now, run=_run(scope, name), who=who, what="KL policy chosen", detail=detail)
    return _view(made)


def take_back(conn: Connection, scope: str, name: str, who: str, now: datetime) -> None:
    """Raises NotFound where nothing was chosen."""
    if not steering.clear(conn, scope, name):
        raise NotFound(f"no KL policy was chosen for the {scope} {name!r}")
    detail = f"{scope} {name}"
    append_audit(conn, at=now, run=_run(scope, name), who=who, what="KL policy taken back", detail=detail)


def steered(conn: Connection, run: str, limits: Limits) -> SteeredView:
    """How a run is steered now. Raises NotFound."""
    subject = read_subject(conn, run)
    if subject is None:
        raise no_run(conn, run)
    choice = steering.choice_for(conn, run, subject.info.project)
    if choice is None or choice.kl_policy == NOBODY:
        return SteeredView(run=run, choice=None if choice is None else _view(choice))
    attempt = steering.newest_attempt(conn, run)
    kept = None if attempt is None else steering.find(conn, attempt)
    bounds = _settings(subject, choice, limits)
    low, high = (
        (None, None) if bounds is None or bounds.bounds is None else (bounds.bounds.low, bounds.bounds.high)
    )
    if kept is None or kept.kl_policy != choice.kl_policy:
        return SteeredView(run=run, choice=_view(choice), why="no step yet", low=low, high=high)
    decision = codec.decode(KlDecision, kept.decision, "decision")
    memory = codec.decode(Remembered, kept.memory, "memory").under(choice)
    return SteeredView(
        run=run,
        choice=_view(choice),
        step=decision.step,
        why=decision.why.value,
        reason=decision.reason,
        value=decision.value,
        low=low,
        high=high,
        stopped=memory.stopped,
    )


def target_of(conn: Connection, subject: Subject) -> float | None:
    """The KL target of a run: as chosen with its policy, else its own; None where neither is a positive number."""
    choice = steering.choice_for(conn, subject.info.id, subject.info.project)
    chosen = None if choice is None else choice.settings.get("target")
    target = subject.info.config.get("kl_target") if chosen is None else chosen
    number = isinstance(target, (int, float)) and not isinstance(target, bool)
    return float(target) if number and target > 0 else None  # type: ignore[arg-type, operator]


def _settings(subject: Subject, choice: Choice, limits: Limits) -> KlSettings | None:
    """None where the operator's limits leave no room."""
    try:
        return KlSettings.of(subject.info.config, limits).under(codec.decode(KlChoice, choice.settings))
    except ValueError:
        return None


def _view(choice: Choice) -> SteeringView:
    policy = POLICIES.get(choice.kl_policy)
    return SteeringView(
        scope=choice.scope,
        name=choice.name,
        kl_policy=choice.kl_policy,
        settings=choice.settings,
        warning="" if policy is None else policy.warning,
        changed_at=choice.changed_at,
        changed_by=choice.changed_by,
    )


def _run(scope: str, name: str) -> str:
    return name if scope == RUN else ""
