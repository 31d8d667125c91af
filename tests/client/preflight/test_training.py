"""C1 to C13: each check speaks on its fault, with the key, and is quiet on the near miss."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.trainer_config import read_config
from rlvitals.preflight.trainer_keys import KEYS, Setting, Trainer
from rlvitals.preflight.training import judge_training
from rlvitals.preflight.training_kl import ESTIMATORS, FAR_NATS, Clamp, tokens_of_update

A, R = "actor_rollout_ref.actor.", "actor_rollout_ref.rollout."
TRL: dict[str, object] = {"num_generations": 8, "max_completion_length": 1024, "logging_nan_inf_filter": False}
VERL: dict[str, object] = {
    "algorithm.adv_estimator": "grpo",
    R + "n": 8,
    "trainer.save_freq": 20,
    A + "use_kl_loss": True,
}
OPENRLHF: dict[str, object] = {
    "algo.advantage.estimator": "group_norm",
    "rollout.n_samples_per_prompt": 8,
    "ckpt.save_steps": 20,
    "algo.kl.use_loss": True,
    "algo.kl.estimator": "k2",
}
SLIME: dict[str, object] = {
    "hf_checkpoint": "x",
    "n_samples_per_prompt": 8,
    "save": "out",
    "save_interval": 20,
    "lr": 1e-6,
    "use_kl_loss": True,
    "kl_loss_type": "k2",
    "kl_loss_coef": 0.01,
}
BASES = {Trainer.TRL: TRL, Trainer.VERL: VERL, Trainer.OPENRLHF: OPENRLHF, Trainer.SLIME: SLIME}


def judged(
    trainer: Trainer, settings: Mapping[str, object], version: tuple[int, ...] | None = None, **more: object
) -> dict[str, Finding]:
    world = more.pop("world_size", None)
    assert world is None or isinstance(world, int)
    cut = more.pop("cut_share", None)
    assert cut is None or isinstance(cut, float)
    config = read_config({**BASES[trainer], **settings}, trainer=trainer, version=version, world_size=world)
    worst: dict[str, Finding] = {}
    for finding in judge_training(config, cut):
        if finding.check not in worst or finding.verdict.rank > worst[finding.check].verdict.rank:
            worst[finding.check] = finding
    return worst


@pytest.mark.parametrize("trainer", BASES)
def test_good_settings_give_a_clean_bill_in_the_order_of_the_checks(trainer: Trainer) -> None:
    found = judged(trainer, {"beta": 0.0} if trainer is Trainer.TRL else {})
    assert list(found) == [f"C{n}" for n in range(1, 14)]
    speaking = {check for check, f in found.items() if f.verdict.rank > 1}
    assert speaking == set()


T = Trainer
CASES: dict[str, tuple[Trainer, dict[str, object], dict[str, object], str, Verdict]] = {
    # check: trainer, what speaks, what must not, check id, verdict
    "trl never saves": (T.TRL, {"save_strategy": "no"}, {"save_strategy": "epoch"}, "C2", Verdict.WARN),
    "trl saves too late": (
        T.TRL,
        {"save_steps": 500, "max_steps": 200},
        {"save_steps": 100, "max_steps": 200},
        "C2",
        Verdict.WARN,
    ),
    "trl saves weights only": (T.TRL, {"save_only_model": True}, {"save_only_model": False}, "C2", Verdict.INFO),
    "verl never saves": (T.VERL, {"trainer.save_freq": -1}, {"trainer.save_freq": 1}, "C2", Verdict.WARN),
    "openrlhf never saves": (T.OPENRLHF, {"ckpt.save_steps": -1}, {"ckpt.save_steps": 5}, "C2", Verdict.WARN),
    "slime has no folder": (T.SLIME, {"save": None}, {}, "C2", Verdict.WARN),
    "k1 in the loss": (T.OPENRLHF, {"algo.kl.estimator": "k1"}, {"algo.kl.estimator": "k2"}, "C3", Verdict.WARN),
    "slime low_var_kl": (T.SLIME, {"kl_loss_type": "low_var_kl"}, {"kl_loss_type": "k2"}, "C3", Verdict.WARN),
    "trl k3": (T.TRL, {"beta": 0.01}, {"beta": 0.0}, "C3", Verdict.INFO),
    "trl beta 0": (T.TRL, {"beta": 0.0}, {"beta": 0.001}, "C4", Verdict.INFO),
    "verl without kl": (T.VERL, {A + "use_kl_loss": False}, {A + "kl_loss_coef": 0.0}, "C4", Verdict.INFO),
    "verl kl in reward": (
        T.VERL,
        {A + "use_kl_loss": False},
        {A + "use_kl_loss": False, "algorithm.use_kl_in_reward": True},
        "C4",
        Verdict.INFO,
    ),
    "pinning": (T.VERL, {A + "kl_loss_coef": 3.0}, {A + "kl_loss_coef": 0.05}, "C5", Verdict.WARN),
    "unusual": (T.VERL, {A + "kl_loss_coef": 0.3}, {A + "kl_loss_coef": 0.1}, "C5", Verdict.INFO),
    "tiny": (T.VERL, {A + "kl_loss_coef": 1e-6}, {A + "kl_loss_coef": 1e-4}, "C5", Verdict.INFO),
    "small batch": (
        T.TRL,
        {"beta": 0.1, "per_device_train_batch_size": 4},
        {"beta": 0.1, "per_device_train_batch_size": 32},
        "C5",
        Verdict.WARN,
    ),
    "rate high": (T.TRL, {"learning_rate": 5e-5}, {"learning_rate": 1e-5}, "C6", Verdict.WARN),
    "rate high for lora": (
        T.TRL,
        {"learning_rate": 2e-3, "use_peft": True},
        {"learning_rate": 2e-4, "use_peft": True},
        "C6",
        Verdict.WARN,
    ),
    "rate zero": (T.VERL, {A + "optim.lr": 0.0}, {A + "optim.lr": 1e-7}, "C6", Verdict.WARN),
    "rate nan": (T.VERL, {A + "optim.lr": math.nan}, {A + "optim.lr": 1e-6}, "C1", Verdict.FATAL),
    "rate infinite": (T.VERL, {A + "optim.lr": math.inf}, {A + "optim.lr": 1e-6}, "C1", Verdict.FATAL),
    "group infinite": (T.VERL, {R + "n": -math.inf}, {R + "n": 8}, "C1", Verdict.FATAL),
    "coefficient nan": (T.TRL, {"beta": math.nan}, {"beta": 0.01}, "C1", Verdict.FATAL),
    "limit infinite": (
        T.TRL,
        {"max_completion_length": math.inf},
        {"max_completion_length": 512},
        "C1",
        Verdict.FATAL,
    ),
    "greedy": (T.TRL, {"temperature": 0.0}, {"temperature": 1.0}, "C7", Verdict.FATAL),
    "cold": (T.TRL, {"temperature": 0.3}, {"temperature": 0.6}, "C7", Verdict.WARN),
    "hot": (T.TRL, {"temperature": 2.0}, {"temperature": 1.2}, "C7", Verdict.WARN),
    "top_p": (T.TRL, {"top_p": 0.9}, {"top_p": 1.0}, "C7", Verdict.WARN),
    "top_k": (T.VERL, {R + "top_k": 50}, {R + "top_k": -1}, "C7", Verdict.WARN),
    "min_p": (T.TRL, {"min_p": 0.1}, {"min_p": None}, "C7", Verdict.WARN),
    "penalty": (T.TRL, {"repetition_penalty": 1.1}, {"repetition_penalty": 1.0}, "C7", Verdict.WARN),
    "one answer": (T.TRL, {"num_generations": 1}, {"num_generations": 4}, "C8", Verdict.FATAL),
    "one answer in verl": (
        T.VERL,
        {R + "n": 1},
        {R + "n": 1, "algorithm.adv_estimator": "gae"},
        "C8",
        Verdict.FATAL,
    ),
    "two answers": (T.TRL, {"num_generations": 2}, {"num_generations": 4}, "C8", Verdict.INFO),
    "uneven, processes unknown": (
        T.TRL,
        {"per_device_train_batch_size": 4},
        {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2},
        "C8",
        Verdict.WARN,
    ),
    "uneven verl": (T.VERL, {"data.train_batch_size": 1000}, {"data.train_batch_size": 512}, "C8", Verdict.FATAL),
    "small verl": (T.VERL, {"data.train_batch_size": 128}, {"data.train_batch_size": 256}, "C8", Verdict.FATAL),
    "uneven slime": (
        T.SLIME,
        {"rollout_batch_size": 32, "global_batch_size": 100},
        {"rollout_batch_size": 32, "global_batch_size": 256},
        "C8",
        Verdict.FATAL,
    ),
    "masking": (
        T.TRL,
        {"mask_truncated_completions": True},
        {"mask_truncated_completions": False},
        "C9",
        Verdict.INFO,
    ),
    "no end": (T.VERL, {R + "ignore_eos": True}, {R + "ignore_eos": False}, "C10", Verdict.FATAL),
    "no early end": (
        T.TRL,
        {"generation_kwargs": {"min_new_tokens": 1024}},
        {"generation_kwargs": {"min_new_tokens": 16}},
        "C10",
        Verdict.FATAL,
    ),
    "never clips": (T.TRL, {"epsilon": 0.9}, {"epsilon": 0.2, "epsilon_high": 0.28}, "C11", Verdict.WARN),
    "upside down": (T.TRL, {"epsilon": 0.2, "epsilon_high": 0.1}, {"epsilon_high": 0.2}, "C11", Verdict.WARN),
    "gspo at token scale": (
        T.TRL,
        {"importance_sampling_level": "sequence"},
        {"importance_sampling_level": "sequence", "epsilon": 3e-4},
        "C11",
        Verdict.WARN,
    ),
    "token at sequence scale": (T.TRL, {"epsilon": 3e-4}, {"epsilon": 0.1}, "C11", Verdict.WARN),
    "half precision": (T.TRL, {"fp16": True}, {"fp16": False, "bf16": True}, "C12", Verdict.WARN),
    "no gradient clipping": (T.TRL, {"max_grad_norm": 0.0}, {"max_grad_norm": 1.0}, "C12", Verdict.WARN),
    "infinite clipping": (T.TRL, {"max_grad_norm": math.inf}, {"max_grad_norm": 0.2}, "C12", Verdict.WARN),
    "nan filter": (T.TRL, {"logging_nan_inf_filter": True}, {}, "C13", Verdict.INFO),
}


@pytest.mark.parametrize("case", CASES)
def test_it_speaks_of_the_fault_and_not_of_the_near_miss(case: str) -> None:
    trainer, fault, near, check, verdict = CASES[case]
    spoken = judged(trainer, fault)[check]
    assert spoken.verdict is verdict
    assert spoken.fix
    assert any(key.split(".")[-1] in spoken.evidence + spoken.where + spoken.fix for key in fault)
    assert judged(trainer, near)[check].verdict in (Verdict.OK, Verdict.SKIPPED)


@pytest.mark.parametrize(
    ("trainer", "settings", "bad", "good"),
    [
        (T.VERL, {A + "kl_loss_type": "low_var_kl"}, (0, 4, 0), (0, 4, 1)),
        (T.OPENRLHF, {"algo.kl.estimator": "k3"}, (0, 11, 1), (0, 11, 2)),
    ],
)
def test_the_clamp_of_the_estimator_depends_on_the_release(
    trainer: Trainer, settings: dict[str, object], bad: tuple[int, ...], good: tuple[int, ...]
) -> None:
    old, new = judged(trainer, settings, bad)["C3"], judged(trainer, settings, good)["C3"]
    assert old.verdict is Verdict.WARN
    assert "NaN" in old.evidence
    assert ".".join(map(str, good)) in old.fix
    assert new.verdict is Verdict.OK
    assert judged(trainer, settings)["C3"].verdict is Verdict.OK


def test_every_release_of_a_clamped_estimator_is_in_the_table_once() -> None:
    for trainer in {known.trainer for known in ESTIMATORS}:
        for version in ((0, 1), (0, 4, 1), (0, 11, 2), (2, 0)):
            for name in {name for known in ESTIMATORS if known.trainer is trainer for name in known.names}:
                fits = [
                    known
                    for known in ESTIMATORS
                    if known.trainer is trainer
                    and name in known.names
                    and version >= known.since
                    and (known.before is None or version < known.before)
                ]
                assert len(fits) == 1


def test_one_far_tokens_pull_is_what_the_formula_says() -> None:
    config = read_config({**TRL, "beta": 0.1, "per_device_train_batch_size": 4}, trainer=T.TRL)
    tokens = tokens_of_update(config)
    assert tokens == 4 * 1024
    share = 0.1 * (math.exp(FAR_NATS) - 1) / math.sqrt(tokens)
    finding = judged(T.TRL, {"beta": 0.1, "per_device_train_batch_size": 4})["C5"]
    assert f"pulls {share:.2g} times" in finding.evidence
    assert "4,096 tokens" in finding.evidence
    assert judged(T.TRL, {"beta": 0.1, "per_device_train_batch_size": 4}, world_size=8)["C5"].verdict is Verdict.OK
    assert Clamp.NONE.value == "none"


def test_the_number_of_processes_decides_whether_groups_are_whole() -> None:
    settings: dict[str, object] = {"per_device_train_batch_size": 4}
    assert judged(T.TRL, settings, world_size=2)["C8"].verdict is Verdict.OK
    assert judged(T.TRL, settings, world_size=3)["C8"].verdict is Verdict.FATAL


def test_masking_of_cut_answers_is_a_warning_where_many_are_cut() -> None:
    masked: dict[str, object] = {"mask_truncated_completions": True}
    assert judged(T.TRL, masked, cut_share=0.1)["C9"].verdict is Verdict.INFO
    assert judged(T.TRL, masked, cut_share=0.6)["C9"].verdict is Verdict.WARN


def test_unknown_settings_are_not_judged_and_it_is_said() -> None:
    (finding,) = judge_training(read_config({"depth": 3}))
    assert finding.verdict is Verdict.WARN
    assert "--trainer" in finding.fix


def test_every_setting_has_a_name_in_some_trainer() -> None:
    named = {setting for keys in KEYS.values() for setting in keys}
    assert named == set(Setting)
