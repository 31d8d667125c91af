"""Settings come in from objects, YAML, JSON, scripts and command lines under the trainer's own names."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest

from rlvitals.preflight.command_line import scalar
from rlvitals.preflight.trainer_config import ConfigReadError, TrainerConfig, flat, read_config
from rlvitals.preflight.trainer_keys import DEFAULTS, KEYS, Setting, Trainer

SCRIPT = """\
#!/bin/bash
set -x
export N=16
MODEL=${MODEL:-Qwen/Qwen2.5-7B}  # the base
CUDA_VISIBLE_DEVICES=0 python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    actor_rollout_ref.model.path=$MODEL \\
    actor_rollout_ref.rollout.n=${N} \\
    data.train_batch_size=$BATCH \\
    +actor_rollout_ref.actor.optim.lr=1e-6 \\
    actor_rollout_ref.actor.use_kl_loss=True trainer.logger='["console","wandb"]' "$@"
echo "it's done
"""
SLIME = """\
ROLLOUT_ARGS=(
   --hf-checkpoint /models/glm   # no default
   --rollout-batch-size 32
   --n-samples-per-prompt 8
   --rollout-top-k -1
   --use-kl-loss
   --kl-loss-coef 0.00
   --eps-clip 0.2 --eps-clip-high=0.28
)
"""


def test_a_verl_script_is_read_with_its_own_variables(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(SCRIPT)
    config = read_config(tmp_path / "run.sh")
    assert config.trainer is Trainer.VERL
    assert config.number(Setting.GROUP_SIZE) == 16
    assert config.number(Setting.LEARNING_RATE) == 1e-6
    assert config.on(Setting.KL_IN_LOSS)
    assert "data.train_batch_size" in config.unresolved
    assert config.find(Setting.PROMPT_BATCH) is None
    kept = config.find(Setting.UPDATE_BATCH)
    assert kept is not None
    assert str(kept) == "actor_rollout_ref.actor.ppo_mini_batch_size = 256 (the default)"


def test_a_slime_script_is_read_by_its_flags(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(SLIME)
    config = read_config(tmp_path / "run.sh")
    assert config.trainer is Trainer.SLIME
    assert config.number(Setting.TOP_K) == -1
    assert config.number(Setting.CLIP_HIGH) == 0.28
    assert config.on(Setting.KL_IN_LOSS)
    assert config.number(Setting.KL_COEF) == 0


@pytest.mark.parametrize(
    "words",
    [
        "--algo.kl.init_coef 0.02 --rollout.n_samples_per_prompt 4 --train.batch_size 64",
        "python -m openrlhf.cli.train_ppo_ray --init_kl_coef 0.02 --n_samples_per_prompt 4 --train_batch_size 64 "
        "--pretrain a/b --micro_train_batch_size 2",
    ],
    ids=["dotted", "flat"],
)
def test_openrlhf_is_read_in_both_styles(words: str) -> None:
    config = read_config(words.split())
    assert config.trainer is Trainer.OPENRLHF
    assert config.number(Setting.KL_COEF) == 0.02
    assert config.number(Setting.GROUP_SIZE) == 4
    assert config.number(Setting.UPDATE_BATCH) == 64


class Strategy(Enum):
    NO = "no"


@dataclass
class GRPOConfig:
    beta: float = 0.04
    save_strategy: Strategy = Strategy.NO
    num_generations: int = 4
    generation_kwargs: dict[str, object] | None = None


def test_objects_are_read_without_knowing_their_class() -> None:
    config = read_config(GRPOConfig(generation_kwargs={"min_new_tokens": 3}))
    assert (config.trainer, config.algorithm) == (Trainer.TRL, "grpo")
    assert config.number(Setting.KL_COEF) == 0.04
    assert config.number(Setting.MIN_TOKENS) == 3
    assert str(config.find(Setting.SAVE_STRATEGY)) == "save_strategy = no"
    assert read_config(Namespace(num_generations=2, beta=0.0)).trainer is Trainer.TRL
    assert read_config({"actor_rollout_ref": {"rollout": {"n": 8}}}).number(Setting.GROUP_SIZE) == 8
    assert read_config({"depth": 3}).trainer is Trainer.UNKNOWN


def test_trls_own_config_is_known_by_every_name_in_the_table() -> None:
    trl = pytest.importorskip("trl", reason="TRL'S NAMES ARE NOT CHECKED: trl is absent")
    from dataclasses import fields

    names = {field.name for field in fields(trl.GRPOConfig)}
    for setting, keys in KEYS[Trainer.TRL].items():
        known = any(key.split(".")[0] in names for key in keys)
        assert known or setting in (Setting.LORA_RANK, Setting.PROMPT_LIMIT), setting
    defaults = {field.name: field.default for field in fields(trl.GRPOConfig)}
    assert defaults["beta"] == DEFAULTS[Trainer.TRL][Setting.KL_COEF]
    assert defaults["num_generations"] == DEFAULTS[Trainer.TRL][Setting.GROUP_SIZE]
    assert defaults["epsilon"] == DEFAULTS[Trainer.TRL][Setting.CLIP_LOW]


def test_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    pytest.importorskip("yaml", reason="YAML IS NOT CHECKED: PyYAML is absent")
    values = {"num_generations": 8, "learning_rate": 1e-6, "nested": {"on": True}}
    (tmp_path / "a.json").write_text("\ufeff" + json.dumps(values), encoding="utf-8")
    (tmp_path / "a.yaml").write_text("num_generations: 8\nlearning_rate: 1e-6\nnested: {'on': true}\n")
    assert read_config(tmp_path / "a.json").values == read_config(tmp_path / "a.yaml").values


def test_overrides_win_and_a_default_may_depend_on_the_version() -> None:
    config = read_config({"num_generations": 8, "beta": 0.04}, {"beta": 0.1})
    assert config.number(Setting.KL_COEF) == 0.1
    plain = TrainerConfig(values={"num_generations": 8}, trainer=Trainer.TRL)
    assert plain.of_version((0, 15)).number(Setting.KL_COEF) == 0.04
    assert plain.of_version((1, 16)).number(Setting.KL_COEF) == 0.0
    assert plain.of_version((1, 9, 2)).number(Setting.COMPLETION_LIMIT) == 256
    assert plain.of_version((1, 10)).number(Setting.COMPLETION_LIMIT) == 512
    assert plain.number(Setting.COMPLETION_LIMIT) is None


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.json", b"{", "not JSON"),
        ("a.json", b"[1]", "expected an object with settings, got a list"),
        ("a.yaml", b"a: [", "not YAML"),
        ("a.yaml", b"just words", "expected a mapping with settings, got a str"),
        ("a.yaml", b"a: \xff", "not UTF-8 at byte 3"),
        ("a.json", b"[" * 100_000, "not JSON"),
    ],
)
def test_what_cannot_be_read_says_what_was_expected(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigReadError, match=told):
        read_config(tmp_path / name)


def test_a_missing_file_and_a_missing_package_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigReadError, match="No such file"):
        read_config(tmp_path / "absent.yaml")
    (tmp_path / "a.yaml").write_text("a: 1")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ConfigReadError, match=r"rlvitals\[check\]"):
        read_config(tmp_path / "a.yaml")


def test_yaml_that_unfolds_without_end_and_yaml_with_objects_stay_harmless(tmp_path: Path) -> None:
    lines = ["a0: &a0 {x: 1}"] + [
        f"a{n}: &a{n} {{{', '.join(f'k{k}: *a{n - 1}' for k in range(9))}}}" for n in range(1, 12)
    ]
    (tmp_path / "bomb.yaml").write_text("\n".join(lines))
    assert len(read_config(tmp_path / "bomb.yaml").values) < 50_000
    (tmp_path / "lists.yaml").write_text(
        "beta: &b0 [1]\n"
        + "\n".join(f"l{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]" for n in range(1, 30))
        + "\nnum_generations: *b29\n"
    )
    assert len(str(read_config(tmp_path / "lists.yaml").find(Setting.GROUP_SIZE))) < 500
    (tmp_path / "code.yaml").write_text("a: !!python/object/apply:os.getcwd []")
    with pytest.raises(ConfigReadError, match="not YAML"):
        read_config(tmp_path / "code.yaml")


def test_a_large_file_is_no_configuration(tmp_path: Path) -> None:
    with (tmp_path / "a.json").open("wb") as file:
        file.truncate(5 << 20)
    with pytest.raises(ConfigReadError, match="no configuration"):
        read_config(tmp_path / "a.json")


def test_a_script_of_blank_lines_is_read_at_once(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("\n" * 300_000 + "--num_generations 8\n" + "${a:-" * 1000)
    assert read_config(tmp_path / "run.sh").number(Setting.GROUP_SIZE) == 8


SHELL = """\
N=4  # answers
LR='1e-6' python -m openrlhf.cli.train_ppo_ray --pretrain a/b --n_samples_per_prompt $N \\
   --actor_learning_rate 5e-7 $EXTRA --eps_clip 0.2 2>&1 | tee --append log.txt
--init_kl_coef 0.02
wait
"""


def test_what_a_shell_does_behind_a_value_is_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(SHELL)
    config = read_config(tmp_path / "run.sh")
    read = (Setting.GROUP_SIZE, Setting.LEARNING_RATE, Setting.CLIP_LOW, Setting.KL_COEF)
    assert [config.number(setting) for setting in read] == [4, 5e-7, 0.2, 0.02]


def test_lists_are_read_flat() -> None:
    assert scalar("[" * 9999 + "]" * 9999) == ["[" * 9998 + "]" * 9998]
    assert scalar("[1, 'a', true]") == [1, "a", True]


def test_nesting_is_bounded() -> None:
    deep: dict[str, object] = {}
    for _ in range(1000):
        deep = {"a": deep}
    assert len(flat(deep)) <= 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-6", 1e-6),
        ("-1", -1),
        ("True", True),
        ("null", None),
        ("[1,2]", [1, 2]),
        ("grpo", "grpo"),
        ("'x'", "x"),
    ],
)
def test_words_become_values(text: str, value: object) -> None:
    assert scalar(text) == value
