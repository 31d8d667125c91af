from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone

import pytest

from rlvitals.contract.command import Bounds, Command, CommandKind, CommandState, Outcome
from rlvitals.control import WAITING_MAX, Control, ControlLimits, Situation, verdict

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


def command(kind: CommandKind = CommandKind.CHECKPOINT, id: str = "c1", **more: object) -> Command:
    return Command(id=id, kind=kind, expires_at=NOW + timedelta(minutes=5), **more)  # type: ignore[arg-type]


@dataclass
class Desk:
    """A control with a clock that the test turns and a journal that the test reads."""

    known: Mapping[str, bool] = field(default_factory=dict)
    capabilities: dict[str, str] = field(default_factory=dict)
    limits: ControlLimits = field(default_factory=ControlLimits)
    now_s: float = 0.0
    journal: list[Command | Outcome] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.control = Control(
            journal_command=lambda command, step: self.journal.append(command),
            journal_outcome=self.journal.append,
            known=lambda: self.known,
            limits=self.limits,
            capabilities=lambda: self.capabilities,
            wall=lambda: NOW + timedelta(seconds=self.now_s),
            clock=lambda: self.now_s,
        )

    @property
    def outcomes(self) -> list[tuple[str, CommandState]]:
        return [(o.command_id, o.state) for o in self.journal if isinstance(o, Outcome)]

    def reason(self) -> str:
        last = self.journal[-1]
        assert isinstance(last, Outcome)
        return last.reason


def test_a_command_is_in_the_journal_before_it_is_handed_out_and_handed_out_once() -> None:
    desk = Desk()
    desk.control.offer([command()])
    (taken,) = desk.control.take(5)
    assert desk.journal == [taken]
    desk.control.offer([command()])
    assert desk.control.take(6) == ()


def test_a_command_that_cannot_be_journalled_is_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLVITALS_RAISE")
    desk = Desk()

    def fail(command: Command, step: int) -> None:
        raise OSError("disk")

    monkeypatch.setattr(desk.control, "_journal_command", fail)
    desk.control.offer([command()])
    assert desk.control.take(5) == ()
    assert desk.control.take(6) == ()


def test_an_id_that_an_earlier_attempt_took_is_answered_and_never_applied_again() -> None:
    desk = Desk(known={"half": False, "done": True})
    desk.control.offer([command(id="half"), command(id="done"), command(id="new")])
    assert [c.id for c in desk.control.take(1)] == ["new"]
    assert desk.outcomes == [("half", CommandState.REFUSED)]
    desk.control.offer([command(id="half")])
    assert len(desk.outcomes) == 1


def test_an_expired_command_is_answered_and_not_applied() -> None:
    desk = Desk()
    desk.control.offer([command()])
    desk.now_s = 301.0
    assert desk.control.take(1) == ()
    assert desk.outcomes == [("c1", CommandState.EXPIRED)]


def test_what_the_integration_cannot_do_is_refused_with_its_reason() -> None:
    desk = Desk(capabilities={"checkpoint": "", "set_kl_coef": "beta is 0, no reference model was loaded"})
    desk.control.offer([command(CommandKind.SET_KL_COEF, argument=0.1), command(CommandKind.PAUSE, id="c2")])
    assert desk.control.take(1) == ()
    reasons = [o.reason for o in desk.journal if isinstance(o, Outcome)]
    assert reasons == ["beta is 0, no reference model was loaded", "this integration cannot do it"]


AT = Situation(now=NOW, step=10, limits=ControlLimits(), capabilities={}, user_value=0.04)


@pytest.mark.parametrize(
    ("argument", "fine"),
    [
        (0.04, True),
        (0.00004, True),
        (0.4, True),
        (0.41, False),
        (0.0000399, False),
        (0.0, False),
        (-0.04, False),
        (math.nan, False),
        (math.inf, False),
        (None, False),
    ],
)
def test_a_kl_coefficient_stays_within_factors_of_the_users_own(argument: float | None, fine: bool) -> None:
    state, reason = verdict(command(CommandKind.SET_KL_COEF, argument=argument), AT)
    assert (state is CommandState.DELIVERED) is fine
    assert bool(reason) is not fine


def test_a_commands_own_bounds_hold_as_well() -> None:
    asked = command(CommandKind.SET_KL_COEF, argument=0.1, bounds=Bounds(low=0.02, high=0.08))
    assert verdict(asked, AT) == (CommandState.REFUSED, "0.1 is outside its own bounds 0.02 … 0.08")
    assert verdict(replace(asked, argument=0.08), AT)[0] is CommandState.DELIVERED


def test_a_learning_rate_factor_is_bounded() -> None:
    for factor, fine in ((1.0, True), (2.0, True), (2.1, False), (0.01, True), (0.009, False)):
        state, _ = verdict(command(CommandKind.SCALE_LR, argument=factor), AT)
        assert (state is CommandState.DELIVERED) is fine


def test_two_changes_keep_their_distance_even_after_a_rewind() -> None:
    asked = command(CommandKind.SET_KL_COEF, argument=0.04)
    assert verdict(asked, replace(AT, last_change=8))[0] is CommandState.REFUSED
    assert verdict(asked, replace(AT, last_change=7))[0] is CommandState.DELIVERED
    assert verdict(asked, replace(AT, last_change=500))[0] is CommandState.DELIVERED
    assert verdict(command(CommandKind.STOP), replace(AT, last_change=10))[0] is CommandState.DELIVERED


def test_the_mailbox_is_bounded() -> None:
    desk = Desk()
    desk.control.offer(command(id=f"c{i}") for i in range(WAITING_MAX + 10))
    assert len(desk.control.take(1)) == WAITING_MAX


def paused(desk: Desk, argument: float | None = None) -> Control:
    desk.control.offer([command(CommandKind.PAUSE, argument=argument)])
    desk.control.take(1)
    return desk.control


def test_nothing_is_held_without_a_pause() -> None:
    assert not Desk().control.holding()


def test_a_pause_holds_until_resume_arrives_which_is_then_taken() -> None:
    desk = Desk()
    control = paused(desk)
    assert control.paused
    assert control.holding()
    control.offer([command(CommandKind.RESUME, id="c2")])
    assert not control.holding()
    assert (control.paused, control.released_by) == (False, "resume")
    assert [c.kind for c in control.take(1)] == [CommandKind.RESUME]


def test_stop_ends_a_pause_but_a_checkpoint_does_not() -> None:
    desk = Desk()
    control = paused(desk)
    control.offer([command(CommandKind.CHECKPOINT, id="c2")])
    assert control.holding()
    control.offer([command(CommandKind.STOP, id="c3")])
    assert not control.holding()
    assert control.released_by == "stop"


def test_a_pause_and_its_resume_in_one_receipt_hold_nothing() -> None:
    desk = Desk()
    desk.control.offer([command(CommandKind.PAUSE), command(CommandKind.RESUME, id="c2")])
    assert len(desk.control.take(1)) == 2
    assert not desk.control.holding()


@pytest.mark.parametrize(("asked", "longest"), [(None, 600.0), (30.0, 30.0), (9999.0, 600.0), (math.nan, 600.0)])
def test_a_pause_has_a_longest_length(asked: float | None, longest: float) -> None:
    desk = Desk(limits=ControlLimits(longest_pause_s=600.0, fail_open_s=1e9))
    control = paused(desk, argument=asked)
    desk.now_s = longest - 1
    assert control.holding()
    desk.now_s = longest
    assert not control.holding()
    assert control.released_by == "longest pause"


def test_a_silent_service_never_holds_a_gpu() -> None:
    desk = Desk(limits=ControlLimits(fail_open_s=60.0))
    desk.now_s = 200.0
    control = paused(desk)
    desk.now_s = 259.0
    assert control.holding()
    control.heard()
    desk.now_s = 300.0
    assert control.holding()
    desk.now_s = 319.0
    assert not control.holding()
    assert control.released_by == "service silent"


def test_an_expired_resume_does_not_release() -> None:
    desk = Desk(limits=ControlLimits(fail_open_s=1e9))
    control = paused(desk)
    control.offer([replace(command(CommandKind.RESUME, id="c2"), expires_at=NOW)])
    assert control.holding()


def test_a_forked_child_takes_no_commands() -> None:
    desk = Desk()
    desk.control.offer([command()])
    desk.control.forked()
    desk.control.offer([command(id="c2")])
    assert desk.control.take(1) == ()


def test_an_outcome_tells_what_was_read_back() -> None:
    desk = Desk()
    desk.control.applied(command(), step=4, before=1.0, after=math.nan)
    (outcome,) = desk.journal
    assert isinstance(outcome, Outcome)
    assert (outcome.state, outcome.step, outcome.before) == (CommandState.APPLIED, 4, 1.0)
    assert outcome.after is not None
    assert math.isnan(outcome.after)
    desk.control.refused(command(), "no optimizer yet", step=4)
    assert desk.reason() == "no optimizer yet"
