from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from rlvitals.contract.command import Bounds, Command, CommandKind, CommandState, Knob, Outcome
from rlvitals.control import WAITING_MAX, Control
from rlvitals.verdict import ControlLimits, Situation, verdict

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


def command(kind: CommandKind = CommandKind.CHECKPOINT, id: str = "c1", **more: object) -> Command:
    fields: dict[str, object] = {"expires_at": NOW + timedelta(minutes=5), "valid_s": 300.0, **more}
    return Command(id=id, kind=kind, **fields)  # type: ignore[arg-type]


@dataclass
class Desk:
    """A control with a clock that the test turns and a journal that the test reads."""

    known: Mapping[str, bool] = field(default_factory=dict)
    earlier: list[tuple[Command, int]] = field(default_factory=list)
    capabilities: dict[str, str] = field(default_factory=dict)
    limits: ControlLimits = field(default_factory=ControlLimits)
    now_s: float = 0.0
    journal: list[Command | Outcome] = field(default_factory=list)
    skew: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        self.control = Control(
            journal_command=lambda command, step: self.journal.append(command),
            journal_outcome=self.journal.append,
            known=lambda: self.known,
            earlier=lambda: self.earlier,
            limits=self.limits,
            capabilities=lambda: self.capabilities,
            wall=lambda: NOW + self.skew + timedelta(seconds=self.now_s),
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


def test_a_cool_down_and_a_budget_go_on_in_the_next_process_which_begins_at_the_users_own_value() -> None:
    earlier = [(command(CommandKind.SET_KL_COEF, "old", argument=0.04), 10), (command(id="other"), 11)]
    limits = ControlLimits(changes=2, cooldown_steps=5)
    desk = Desk(earlier=earlier, limits=limits)
    desk.control.user_value(CommandKind.SET_KL_COEF, 0.01)
    desk.control.offer([command(CommandKind.SET_KL_COEF, "soon", argument=0.02)])
    assert desk.control.take(12) == ()
    assert desk.reason() == "changed at step 10, not again before step 15"
    desk.control.offer([command(CommandKind.SET_KL_COEF, "far", argument=0.11)])
    assert desk.control.take(15) == ()
    assert "0.11 is outside the client's bounds" in desk.reason()
    desk.control.offer([command(CommandKind.SET_KL_COEF, "second", argument=0.1)])
    assert [taken.id for taken in desk.control.take(16)] == ["second"]
    desk.control.offer([command(CommandKind.SCALE_LR, "third", argument=0.5)])
    assert desk.control.take(17) == ()
    assert "2 changes were made to this run already" in desk.reason()


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


AT = Situation(step=10, limits=ControlLimits(), capabilities={}, user_value=0.04)


@pytest.mark.parametrize(
    ("argument", "fine"),
    [
        (0.04, True),
        (0.004, True),
        (0.4, True),
        (0.41, False),
        (0.0039, False),
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
    for factor, fine in ((1.0, True), (2.0, True), (2.1, False), (0.1, True), (0.09, False)):
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
    control.offer([command(CommandKind.RESUME, id="c2", valid_s=0.0)])
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


def test_the_trainers_clock_a_day_ahead_or_behind_expires_nothing_and_keeps_nothing_alive() -> None:
    for skew in (timedelta(days=1), timedelta(days=-1)):
        desk = Desk(skew=skew)
        desk.control.offer([command(), command(id="late", valid_s=10.0)])
        desk.now_s = 10.0
        assert [c.id for c in desk.control.take(1)] == ["c1"]
        assert desk.outcomes == [("late", CommandState.EXPIRED)]


def test_a_command_that_is_offered_again_keeps_its_first_end() -> None:
    desk = Desk()
    desk.control.offer([command(valid_s=20.0)])
    desk.now_s = 15.0
    desk.control.offer([command(valid_s=20.0)])
    desk.now_s = 21.0
    assert desk.control.take(1) == ()


def test_a_service_of_an_earlier_release_is_believed_by_the_time_of_day() -> None:
    desk = Desk()
    desk.control.offer([command(valid_s=None), command(id="past", valid_s=None, expires_at=NOW)])
    assert [c.id for c in desk.control.take(1)] == ["c1"]
    assert desk.outcomes == [("past", CommandState.EXPIRED)]


def apply(desk: Desk, asked: Command, step: int, after: float | None) -> str:
    """ "" if it was applied, else why not."""
    desk.control.offer([asked])
    if not desk.control.take(step):
        return desk.reason()
    desk.control.applied(asked, step=step, before=None, after=after)
    return ""


def test_many_factors_on_the_learning_rate_do_not_wander_beyond_its_bounds() -> None:
    desk = Desk()
    for number, (factor, fine) in enumerate([(2.0, True), (1.5, False), (0.5, True), (2.0, True), (1.01, False)]):
        asked = command(CommandKind.SCALE_LR, f"c{number}", argument=factor)
        assert (apply(desk, asked, number * 10, 1e-5) == "") is fine


def test_one_command_moves_what_is_in_force_by_a_factor_at_most() -> None:
    desk = Desk()
    desk.control.user_value(CommandKind.SET_KL_COEF, 0.04)
    assert "factor 10 from 0.04" in apply(desk, command(CommandKind.SET_KL_COEF, "a", argument=0.003), 0, None)
    assert apply(desk, command(CommandKind.SET_KL_COEF, "b", argument=0.004), 10, 0.004) == ""
    assert apply(desk, command(CommandKind.SET_KL_COEF, "c", argument=0.0004), 20, 0.0004) == ""
    assert "client's bounds" in apply(desk, command(CommandKind.SET_KL_COEF, "d", argument=0.00004 / 2), 30, None)


def test_all_commands_at_one_step_together_move_a_number_by_a_factor_at_most() -> None:
    desk = Desk(limits=ControlLimits(cooldown_steps=0, command_factor=4.0, step_factor=4.0))
    desk.control.user_value(CommandKind.SET_KL_COEF, 0.04)
    asked = [command(CommandKind.SET_KL_COEF, f"c{n}", argument=value) for n, value in enumerate((0.02, 0.006))]
    desk.control.offer(asked)
    assert [c.id for c in desk.control.take(5)] == ["c0"]
    assert desk.reason() == "0.006 is more than a factor 4 from 0.04"


def test_a_command_that_the_trainer_could_not_do_moved_nothing() -> None:
    desk = Desk(limits=ControlLimits(changes=2, cooldown_steps=0))
    desk.control.user_value(CommandKind.SET_KL_COEF, 0.04)
    first = command(CommandKind.SET_KL_COEF, "a", argument=0.004)
    desk.control.offer([first])
    desk.control.take(1)
    desk.control.refused(first, "no optimizer yet", step=1)
    assert "more than a factor 10 from 0.04" in apply(
        desk, command(CommandKind.SET_KL_COEF, "b", argument=0.0004), 9, None
    )
    assert apply(desk, command(CommandKind.SET_KL_COEF, "c", argument=0.02), 9, 0.02) == ""
    assert apply(desk, command(CommandKind.SET_KL_COEF, "d", argument=0.01), 10, 0.01) == ""
    assert "2 changes were made to this run already" in apply(
        desk, command(CommandKind.SET_KL_COEF, "e", argument=0.02), 11, None
    )


@dataclass
class Thermostat:
    value: float = 1.0

    def set(self, value: float) -> None:
        self.value = value


def a_knob(desk: Desk, **given: Any) -> Thermostat:
    thermostat = Thermostat()
    knob = Knob(**{"low": -2.0, "high": 2.0, "max_change": 0.5, "cool_down_steps": 5, **given})
    desk.control.knobs.add("temperature", thermostat.set, lambda: thermostat.value, knob)
    return thermostat


def turn(desk: Desk, value: float | None, step: int, name: str = "temperature") -> str:
    """ "" where the knob was turned, else why not."""
    asked = command(CommandKind.SET_KNOB, f"{name} {value} {step}", argument=value, knob=name)
    desk.control.offer([asked])
    if not desk.control.take(step):
        return desk.reason()
    turned = desk.control.knobs.turn(name, asked.argument or 0.0)
    desk.control.applied(asked, step=step, before=turned.before, after=turned.after)
    return turned.fault


def test_a_knob_is_turned_within_its_bounds_its_largest_change_and_its_cool_down() -> None:
    desk = Desk()
    thermostat = a_knob(desk)
    assert turn(desk, 0.5, 0) == ""
    assert thermostat.value == 0.5
    assert turn(desk, 0.4, 4) == "changed at step 0, not again before step 5"
    assert turn(desk, -0.1, 5) == "-0.1 is further from 0.5 than 0.5"
    assert turn(desk, 0.0, 5) == ""
    assert turn(desk, -0.5, 10) == ""
    assert turn(desk, 2.1, 20) == "2.1 is outside the knob's bounds -2 … 2"
    assert turn(desk, 1.0, 20, name="nobody's") == 'there is no knob "nobody\'s" here'


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_a_knob_is_never_turned_to_what_is_no_number(value: float | None) -> None:
    desk = Desk()
    thermostat = a_knob(desk)
    assert "needs a finite argument" in turn(desk, value, 0)
    assert thermostat.value == 1.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_knob_that_reads_what_is_no_number_has_no_known_value(value: float) -> None:
    desk = Desk()
    thermostat = a_knob(desk)
    thermostat.value = value
    assert turn(desk, 1.2, 0) == ""
    assert desk.control.knobs.now("temperature") == 1.2


@pytest.mark.parametrize(
    "given",
    [
        {"low": math.nan},
        {"high": math.inf},
        {"low": 2.0},
        {"value": 9.0},
        {"value": math.nan},
        {"max_change": 0.0},
        {"max_change": math.nan},
        {"cool_down_steps": -1},
    ],
)
def test_bounds_that_are_none_are_refused_where_the_knob_is_registered(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="knob temperature: expected"):
        a_knob(Desk(), **given)


def test_a_knob_whose_own_code_fails_is_refused_with_its_words() -> None:
    desk = Desk()

    def fail(value: float) -> None:
        raise RuntimeError("the sampler is gone")

    desk.control.knobs.add("temperature", fail, None, Knob(low=0.0, high=2.0, value=1.0))
    assert turn(desk, 1.5, 0) == "the knob's own code failed: RuntimeError: the sampler is gone"
    assert desk.control.knobs.now("temperature") == 1.0


def test_a_factor_or_a_distance_that_a_person_types_is_not_refused_for_its_last_digit() -> None:
    for number in range(1, 1000):
        now, tenth = float(f"{number}e-3"), float(f"{number}e-4")
        for before, after in ((now, tenth), (tenth, now)):
            at = replace(AT, user_value=before, in_force=before)
            assert verdict(command(CommandKind.SET_KL_COEF, argument=after), at) == (CommandState.DELIVERED, "")
        knob = Knob(low=0.0, high=2.0, max_change=0.1)
        asked = command(CommandKind.SET_KNOB, argument=round(now + 0.1, 3), knob="k")
        assert verdict(asked, replace(AT, knob=knob, in_force=now)) == (CommandState.DELIVERED, "")


def test_what_an_attempt_did_that_ended_meanwhile_is_read_before_its_commands_are_taken() -> None:
    desk = Desk()
    desk.control.offer([command(id="mine")])
    desk.control.take(5)
    desk.known = {"half": False, "done": True, "mine": False}
    desk.control.inherit()
    desk.control.offer([command(id=name) for name in ("half", "done", "mine", "fresh")])
    assert [taken.id for taken in desk.control.take(6)] == ["fresh"]
    assert desk.outcomes == [("half", CommandState.REFUSED)], "and its own is not answered for it"


def test_journals_that_could_not_be_read_are_read_again_before_anything_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("RLVITALS_RAISE")
    desk = Desk(known={"half": False})
    with monkeypatch.context() as broken:
        broken.setattr(desk.control, "_load_known", lambda: 1 / 0)
        desk.control.offer([command(id="half")])
    desk.control.offer([command(id="half")])
    assert desk.control.take(6) == ()
    assert desk.outcomes == [("half", CommandState.REFUSED)]


def test_nothing_is_taken_once_no_journal_is_written_any_more() -> None:
    desk = Desk()
    desk.control.offer([command()])
    desk.control.close()
    assert desk.control.take(5) == ()
