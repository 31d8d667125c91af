"""The rows of trainers that spread over a cluster, see `docs.matrix_rows`."""

from __future__ import annotations

from docs.matrix import CLIENT, REAL, VERBS, Column, Trainer, all_of, cannot, untested, works
from rlvitals.contract.command import CommandKind as Do
from rlvitals.contract.metrics import Family as F

_W, _STORY, _WORKER = (f"{REAL}test_verl{part}.py::" for part in ("", "_story", "_worker"))
_TOLD_VERL = _W + "test_what_verl_can_tell_is_told"
_OLD = REAL + "test_verl_old.py::"
_OURS = (
    "0.4.1, 0.5.0, 0.6.1, 0.7 and 0.8.0: verl's own driver, objects and losses; generation and workers stand in"
)
_NO_KNOB = {Do.SET_KNOB: cannot("a knob is registered in the training's own loop, which is not yours here")}
VERL = Trainer(
    title="verl",
    page="verl.md",
    attach="none from 0.9 on: `pip install` is enough; before, one environment variable, by release",
    support="rlvitals.integrations.verl.support",
    columns=(
        Column(title="0.9.1, V1 and V0", versions=("0.9.1",)),
        Column(
            title="0.4 to 0.8",
            versions=("0.4.1", "0.5.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0"),
            rows={
                **all_of(
                    works(
                        _OLD + "test_each_step_that_is_run_is_seen_whole_and_the_run_is_bit_for_bit_the_same",
                        said=_OURS,
                    ),
                    *(F.TEXT, F.LENGTH, F.REWARD, F.KL, F.RATIO, F.POLICY, F.PROGRESS, F.SELF),
                ),
                **all_of(
                    works(
                        _OLD + "test_a_gradient_norm_that_is_nan_is_told_as_nan_at_that_very_step",
                        said="0.4.1 and 0.8.0, with stand-ins for workers: the norm, not the single parameters",
                    ),
                    *(F.GRADIENT, F.NUMERICS),
                ),
                **all_of(
                    works(
                        _OLD + "test_commands_are_carried_out_between_two_steps_and_read_back_from_every_rank",
                        said=_OURS,
                    ),
                    *VERBS,
                ),
                **_NO_KNOB,
            },
        ),
    ),
    rows={
        F.TEXT: works(_W + "test_completions_come_with_text_prompt_and_ids"),
        F.LENGTH: works(_W + "test_truncation_counts_from_the_configured_limit"),
        **all_of(works(_TOLD_VERL), F.REWARD, F.KL, F.RATIO, F.POLICY, F.PROGRESS),
        F.GRADIENT: works(_W + "test_verl_skipped_the_poisoned_step_and_we_saw_that"),
        F.NUMERICS: works(_W + "test_a_gradient_that_is_nan_is_told_as_nan_at_that_very_step_and_at_no_other"),
        F.COMPONENT: untested(
            "verl has one score a completion; what a reward function adds is drawn as it is logged"
        ),
        F.CORRECTION: untested("verl's own weights of the correction are drawn where it logs them"),
        F.CRITIC: untested("verl's own numbers of the critic are drawn"),
        F.GUARD: untested("guards wrap reward functions and samplers; none was run inside verl"),
        F.SELF: works(_W + "test_every_metric_of_the_registry_is_given_or_missing_with_a_reason"),
        **all_of(works(_STORY + "test_the_pause_held_the_job_between_two_steps"), Do.PAUSE, Do.RESUME),
        **all_of(works(_STORY + "test_checkpoint_and_stop_end_the_job_well"), Do.STOP, Do.CHECKPOINT),
        Do.SET_KL_COEF: works(_STORY + "test_an_approved_coefficient_holds_on_the_workers_from_the_next_step_on"),
        Do.SCALE_LR: works(
            _WORKER + "test_a_worker_takes_a_coefficient_and_a_rate_and_finds_poison",
            CLIENT + "test_verl_v1.py::test_the_learning_rate_is_scaled_on_all_ranks",
            said="one engine worker of verl's; on all ranks with objects of verl's shape",
        ),
        **_NO_KNOB,
    },
)

_ONE = "its main branch on verl 0.7.0; generation and workers stand in"
AGENT_R1 = Trainer(
    title="Agent-R1",
    page="agent-r1.md",
    attach="as verl: `VERL_USE_EXTERNAL_MODULES=rlvitals.integrations.verl`",
    columns=(Column(title="main, on verl 0.7", versions=()),),
    rows={
        **all_of(
            works(
                _OLD + "test_rows_that_fill_a_batch_up_are_no_completions_and_each_row_has_its_trajectorys_score",
                said=_ONE,
            ),
            *(F.TEXT, F.LENGTH, F.REWARD, F.KL, F.RATIO),
        ),
        F.POLICY: works(
            _OLD + "test_a_forced_end_of_turn_left_in_the_loss_is_named_on_the_page_from_the_first_step", said=_ONE
        ),
        **all_of(
            works(_OLD + "test_the_run_of_an_agent_is_bit_for_bit_the_same", said=_ONE),
            *(F.SELF, F.PROGRESS),
        ),
        **all_of(
            untested("as in verl, whose loop and losses it trains with"),
            *(F.GRADIENT, F.NUMERICS, F.COMPONENT, F.CORRECTION, F.CRITIC, F.GUARD),
        ),
        **all_of(
            works(_OLD + "test_an_agents_coefficient_is_set_on_all_ranks", said=_ONE),
            *VERBS,
        ),
        **_NO_KNOB,
    },
)

_O = REAL + "test_openrlhf.py::"
_HELD_OPEN = _O + "test_a_stop_saves_and_the_job_ends_as_it_ends_by_itself"
_R, _S = CLIENT + "test_openrlhf_control.py::", CLIENT + "test_openrlhf_signals.py::"
_TOLD_OPEN = _O + "test_every_step_that_openrlhf_ran_was_seen_with_every_metric_or_its_reason"
_SHAPES_OPEN = "shown with objects of OpenRLHF's shape"
OPENRLHF = Trainer(
    title="OpenRLHF",
    page="openrlhf.md",
    attach="`python -m rlvitals.integrations.openrlhf.launch -m openrlhf.cli.train_ppo_ray …`",
    support="rlvitals.integrations.openrlhf.support",
    columns=(
        Column(title="0.11.2", versions=("0.11.2",)),
        Column(
            title="0.9.1 to 0.11.0",
            versions=(),
            rows=all_of(
                untested("names and signatures were compared with their source; not run to the end"),
                *(F.TEXT, F.LENGTH, F.REWARD, F.KL, F.RATIO, F.POLICY, F.GRADIENT, F.PROGRESS, F.SELF),
                *(F.NUMERICS, F.CRITIC, *VERBS),
            )
            | _NO_KNOB,
        ),
    ),
    rows={
        **all_of(works(_TOLD_OPEN), F.TEXT, F.REWARD, F.POLICY, F.GRADIENT, F.PROGRESS, F.SELF),
        F.LENGTH: works(
            _S + "test_truncation_is_the_engines_word_and_never_the_share_that_reached_the_context_limit"
        ),
        F.KL: works(_S + "test_the_kl_gradient_is_that_of_the_loss_over_all_ranks"),
        F.RATIO: works(_S + "test_the_largest_ratio_of_all_ranks_is_told_with_its_token"),
        F.NUMERICS: works(_S + "test_a_log_prob_or_reward_that_is_no_number_is_told_as_what_it_is"),
        F.CRITIC: works(_O + "test_ppo_is_watched_with_its_critic"),
        F.COMPONENT: untested("one reward a completion; what a reward function adds is drawn as it is logged"),
        F.CORRECTION: untested("the trainer's own weights of the correction are drawn where it logs them"),
        F.GUARD: untested("guards wrap reward functions and samplers; none was run inside OpenRLHF"),
        **all_of(works(_HELD_OPEN), Do.PAUSE, Do.RESUME, Do.STOP),
        Do.CHECKPOINT: works(
            _R + "test_a_checkpoint_is_the_trainers_own_and_its_schedules_stay", said=_SHAPES_OPEN
        ),
        Do.SET_KL_COEF: works(_O + "test_an_approved_coefficient_holds_on_all_ranks_from_the_next_step_on"),
        Do.SCALE_LR: works(_R + "test_the_learning_rate_is_scaled_on_every_rank", said=_SHAPES_OPEN),
        **_NO_KNOB,
    },
)

_B, _F = REAL + "test_slime.py::", CLIENT + "test_slime.py::"
_PARTS = "slime's own contracts, loss, samples and groups with our functions; slime does not train on a CPU"
_BEFORE = _F + "test_a_training_step_is_measured_from_slimes_own_loss"
SLIME = Trainer(
    title="slime",
    page="slime.md",
    attach="`--custom-rollout-log-function-path rlvitals.integrations.slime.log_rollout`",
    support="rlvitals.integrations.slime.support",
    columns=(Column(title="main of 2026-08-21", versions=("main of 2026-08-21",)),),
    rows={
        **all_of(
            works(_B + "test_slimes_own_samples_are_read_through_its_own_call", said=_PARTS),
            *(F.TEXT, F.LENGTH, F.REWARD),
        ),
        **all_of(
            works(_B + "test_slimes_own_loss_is_seen_as_it_is_and_left_bit_for_bit_the_same", said=_PARTS),
            *(F.KL, F.RATIO, F.POLICY),
        ),
        F.NUMERICS: works(_B + "test_the_gradient_that_slime_makes_nan_is_told_before_it_does", said=_PARTS),
        F.GRADIENT: works(_BEFORE, said="the norm alone: Megatron keeps gradients and weights in shards"),
        F.PROGRESS: works(_F + "test_every_metric_of_the_training_side_is_given_or_missing_with_a_reason"),
        F.SELF: works(_F + "test_every_metric_of_the_training_side_is_given_or_missing_with_a_reason"),
        F.COMPONENT: untested("one reward a completion; what slime logs beside it is drawn"),
        F.CORRECTION: untested("slime's own weights of the correction are drawn where it logs them"),
        F.CRITIC: untested("slime's own numbers of the critic are drawn"),
        F.GUARD: untested("guards wrap reward functions and samplers; none was run inside slime"),
        **all_of(
            works(
                REAL + "test_slime_story.py::"
                "test_an_unhealthy_job_of_slimes_processes_is_seen_explained_steered_and_stopped",
                said=_PARTS,
            ),
            *(Do.PAUSE, Do.RESUME, Do.STOP),
        ),
        Do.CHECKPOINT: untested("slime's own save is called on all ranks; Megatron's save was not run"),
        Do.SET_KL_COEF: works(_B + "test_a_coefficient_reaches_both_ranks_in_slimes_own_group", said=_PARTS),
        Do.SCALE_LR: cannot("Megatron's scheduler works the rate out anew at each step"),
        **_NO_KNOB,
    },
)
