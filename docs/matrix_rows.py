"""The rows of docs/integrations/README.md. Whoever makes something work, or finds that it can't, says so here."""

from __future__ import annotations

from docs.matrix import CLIENT, REAL, SIGNALS, VERBS, Cell, Column, Row, Trainer, all_of, cannot, untested, works
from docs.matrix_clusters import AGENT_R1, OPENRLHF, SLIME, VERL
from rlvitals.contract.command import CommandKind as Do
from rlvitals.contract.metrics import Family as F

GUARDS = CLIENT + "test_trl_guards.py::test_each_guard_tells_the_run_what_it_did"
OWN = "tests/client/test_reporter.py::test_texts_can_be_switched_off_for_every_integration_at_once"


_V = REAL + "trl_versions/test_versions.py::"
_T = CLIENT + "test_trl_"
_NOT_OLD = "guards were run with 1.16 only"
_TOLD = _V + "test_each_metric_of_the_registry_is_given_or_missing_with_a_reason"
_MEASURED = _V + "test_what_is_told_is_what_the_recorded_tensors_say"
_STEERED = _V + "test_commands_are_carried_out_and_their_values_read_back"
_HELD = _V + "test_a_pause_holds_between_two_steps_and_stop_saves"
_SHORT = _V + "test_a_trainer_that_shows_no_rewards_says_so_and_tells_what_it_logs"
_LOGGED_ALONE = "this release shows no rewards by completion: what it logs of them is told"
_N = REAL + "trl_versions/test_logged.py::"
_SCALARS = works(
    _N + "test_each_step_tells_its_own_numbers_whatever_the_logging_interval",
    said="what the trainer logs, each step its own",
)
_NO_TENSORS = cannot("these trainers show what they log, not their tensors")
_LOGGING: dict[Row, Cell] = {
    **all_of(_SCALARS, F.REWARD, F.KL, F.POLICY, F.CRITIC, F.PROGRESS, F.GRADIENT),
    **all_of(_NO_TENSORS, F.TEXT, F.LENGTH, F.COMPONENT, F.RATIO, F.CORRECTION, F.NUMERICS),
    F.GUARD: untested("guards were run with GRPO only"),
    F.SELF: works(_N + "test_steps_seen_are_steps_run_and_nothing_is_left_unsaid"),
    Do.SET_KL_COEF: works(_N + "test_the_coefficient_is_set_and_the_trainer_uses_it_from_the_next_step_on"),
    Do.STOP: works(
        _N + "test_a_loop_that_never_asks_whether_to_stop_says_so_and_the_others_stop",
        said="refused for PPO, whose loop never asks whether to stop",
    ),
    **all_of(works(_N + "test_pause_rate_and_checkpoint_work"), Do.PAUSE, Do.RESUME, Do.CHECKPOINT, Do.SCALE_LR),
    Do.SET_KNOB: untested("knobs were turned with GRPO only"),
}
TRL = Trainer(
    title="TRL",
    page="trl.md",
    attach="`rlvitals.attach(trainer)`",
    support="rlvitals.integrations.trl.support",
    columns=(
        Column(title="GRPO, RLOO 1.7 to 1.16", versions=("1.7.0", "1.13.0", "1.16.0")),
        Column(title="0.20 to 0.29", versions=("0.20.0", "0.23.1", "0.29.1"), rows={F.GUARD: untested(_NOT_OLD)}),
        Column(
            title="0.17",
            versions=("0.17.0",),
            rows={F.GUARD: untested(_NOT_OLD)}
            | all_of(
                works(_SHORT, said=_LOGGED_ALONE),
                F.REWARD,
            ),
        ),
        Column(
            title="0.15",
            versions=("0.15.2",),
            rows={
                F.GUARD: untested(_NOT_OLD),
                F.REWARD: works(_SHORT, said=_LOGGED_ALONE),
                F.RATIO: cannot("this release never reuses a generation: the ratio is 1 by construction"),
                **all_of(cannot("this release has no method that generates alone"), F.TEXT, F.LENGTH),
            },
        ),
        Column(title="PPO, OnlineDPO, Nash-MD, XPO", versions=(), rows=_LOGGING),
    ),
    rows={
        **all_of(works(_MEASURED, _TOLD), F.LENGTH, F.REWARD, F.KL, F.POLICY),
        **all_of(works(_TOLD), F.TEXT, F.GRADIENT, F.PROGRESS),
        F.NUMERICS: works(_V + "test_a_nan_loss_that_the_trainer_logs_as_0_is_told_as_nan_at_its_step"),
        F.RATIO: works(_V + "test_ratios_are_measured_where_the_trainer_keeps_old_log_probs"),
        F.COMPONENT: works(
            _V + "test_a_trainer_that_shows_no_rewards_says_so_and_tells_what_it_logs",
            "tests/monitor/alerts/test_components.py::test_the_longest_standing_component_is_named_and_nan_ends_its_run",
            said="each reward function's mean is told; what follows from them is derived where rules are judged",
        ),
        F.CORRECTION: untested("the trainer's own weights of the correction are drawn where it logs them"),
        F.CRITIC: untested("PPO alone has one: what it logs of it is drawn"),
        F.GUARD: works(GUARDS),
        F.SELF: works(_TOLD),
        **all_of(works(_STEERED), Do.SET_KL_COEF, Do.SCALE_LR, Do.CHECKPOINT),
        **all_of(works(_HELD), Do.PAUSE, Do.RESUME, Do.STOP),
        Do.SET_KNOB: works(
            CLIENT + "test_trl_control.py::test_a_knob_of_the_users_own_is_turned_between_two_steps_and_read_back"
        ),
    },
)

_L, _C = CLIENT + "test_loop.py::", CLIENT + "test_loop_control.py::"
_GIVEN = _L + "test_every_metric_of_the_registry_is_given_or_missing_with_a_reason"
_PAUSED = _C + "test_a_pause_holds_inside_step_until_it_is_released_and_what_came_with_it_is_done"
LOOP = Trainer(
    title="A loop of your own",
    page="loop.md",
    attach="`with rlvitals.run(…) as vitals:`",
    columns=(Column(title="PyTorch, accelerate, Lightning", versions=()),),
    rows={
        **all_of(works(_GIVEN), F.LENGTH, F.REWARD, F.KL, F.RATIO, F.POLICY, F.GRADIENT, F.NUMERICS),
        F.TEXT: works(_L + "test_a_tokenizer_tells_of_the_text_and_ranges_override_it"),
        F.COMPONENT: works(_L + "test_the_engines_own_word_and_several_reward_functions"),
        F.CORRECTION: works(
            _L + "test_the_loops_own_numbers_take_the_registrys_names_but_never_their_measured_values",
            said="as the loop's own numbers; they are told, not measured",
        ),
        F.CRITIC: works(
            _L + "test_the_loops_own_numbers_take_the_registrys_names_but_never_their_measured_values",
            said="as the loop's own numbers; they are told, not measured",
        ),
        F.GUARD: works(GUARDS),
        F.PROGRESS: works(_L + "test_phases_are_timed_where_the_loop_tells_of_them"),
        F.SELF: works(OWN),
        **all_of(works(_PAUSED), Do.PAUSE, Do.RESUME),
        Do.STOP: works(_C + "test_a_stop_saves_first_and_stops_even_where_that_fails"),
        Do.CHECKPOINT: works(_C + "test_a_checkpoint_is_the_loops_own_and_is_told_with_its_path"),
        Do.SET_KL_COEF: works(_C + "test_the_coefficient_is_set_by_the_loops_handler_and_read_back"),
        Do.SCALE_LR: works(_C + "test_the_learning_rate_and_its_schedule_are_scaled"),
        Do.SET_KNOB: works(_C + "test_a_knob_of_the_loops_own_is_told_turned_and_read_back"),
    },
)

_LOGGED = "what the log holds of it, under the registry's names where they are known"
_READ = "tests/client/test_tail.py::test_a_growing_console_log_is_reported_step_by_step"
TAIL = Trainer(
    title="Sidecar, no code",
    page="tail.md",
    attach="`rlvitals tail PATH…`",
    columns=(Column(title="any trainer that writes a log", versions=()),),
    rows={
        **all_of(works(_READ, said=_LOGGED), *(f for f in SIGNALS if f not in (F.SELF, F.GUARD))),
        F.GUARD: cannot("guards report from inside the job"),
        F.SELF: works(OWN),
        **all_of(cannot("a log is read, the job cannot be reached"), *VERBS),
    },
)

TRAINERS: tuple[Trainer, ...] = (TRL, VERL, AGENT_R1, OPENRLHF, SLIME, LOOP, TAIL)
