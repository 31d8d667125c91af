"""A trainer of TRL that shows what it logs and no tensors, lived through: prints a JSON line with what happened.

``python -m tests.trainers.trl_versions.logged ppo|online_dpo|nash_md|xpo FOLDER``
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
import trl
from datasets import Dataset
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    Qwen2ForCausalLM,
    Trainer,
    set_seed,
)

import rlvitals
from rlvitals.contract.command import CommandKind, Outcome
from rlvitals.contract.metrics import BY_NAME
from tests.client.integrations import tiny
from tests.trainers.trl_versions.story import command, train_under

PLAIN: dict[str, Any] = {
    "learning_rate": 1e-3,
    "per_device_train_batch_size": 4,
    "report_to": [],
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "disable_tqdm": True,
    "lr_scheduler_type": "constant",
    "save_strategy": "no",
    "seed": 5,
}


def ppo(policy: Path, output: Path) -> Any:
    module = importlib.import_module("trl.experimental.ppo")
    tokenizer = AutoTokenizer.from_pretrained(str(policy))
    rows = [tokenizer(prompt)["input_ids"] for prompt in tiny.PROMPTS]
    own = {"response_length": tiny.CAP, "num_ppo_epochs": 1, "num_mini_batches": 1, "total_episodes": 16}
    return module.PPOTrainer(
        args=module.PPOConfig(output_dir=str(output), num_sample_generations=0, kl_coef=0.05, **own, **PLAIN),
        processing_class=tokenizer,
        model=AutoModelForCausalLM.from_pretrained(str(policy)),
        ref_model=AutoModelForCausalLM.from_pretrained(str(policy)),
        reward_model=scorer(policy),
        value_model=scorer(policy),
        train_dataset=Dataset.from_dict({"input_ids": rows}),
        eval_dataset=Dataset.from_dict({"input_ids": rows}),
    )


def online(kind: str, policy: Path, output: Path) -> Any:
    """OnlineDPO, Nash-MD and XPO are made alike."""
    module = importlib.import_module(f"trl.experimental.{kind}")
    name = {"online_dpo": "OnlineDPO", "nash_md": "NashMD", "xpo": "XPO"}[kind]
    own = {"max_new_tokens": tiny.CAP, "max_length": 64, "beta": 0.05, "max_steps": 4, "logging_steps": 2}
    return getattr(module, f"{name}Trainer")(
        model=Qwen2ForCausalLM.from_pretrained(str(policy)),
        ref_model=None if kind == "online_dpo" else Qwen2ForCausalLM.from_pretrained(str(policy)),
        processing_class=AutoTokenizer.from_pretrained(str(policy)),
        reward_funcs=tiny.letters if kind == "online_dpo" else scorer(policy),
        args=getattr(module, f"{name}Config")(output_dir=str(output), **own, **PLAIN),
        train_dataset=Dataset.from_dict({"prompt": tiny.PROMPTS}),
    )


def scorer(policy: Path) -> Any:
    torch.manual_seed(9)
    return AutoModelForSequenceClassification.from_pretrained(str(policy), num_labels=1)


def main(kind: str, folder: Path) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    os.environ["RLVITALS_RAISE"] = "1"
    policy = tiny.save_policy(folder / "policy")

    def make(*given: Path) -> Any:
        set_seed(7)
        return ppo(*given) if kind == "ppo" else online(kind, *given)

    plain = make(policy, folder / "plain")
    plain.train()
    watched = make(policy, folder / "watched")
    rlvitals.attach(watched)
    watched.train()
    print(
        json.dumps(
            {
                "version": trl.__version__,
                "plain": tiny.weights_hash(plain),
                "watched": tiny.weights_hash(watched),
                **steered(make(policy, folder / "steered")),
                "checkpoints": sorted(path.name for path in (folder / "steered").glob("checkpoint-*")),
            }
        ),
        flush=True,
    )


def steered(trainer: Trainer) -> dict[str, Any]:
    """KL at 1, the rate and a pause at 2, a checkpoint and stop at 3."""
    at = {
        1: [command("kl", CommandKind.SET_KL_COEF, 0.02)],
        2: [command("lr", CommandKind.SCALE_LR, 0.5), command("p", CommandKind.PAUSE)],
        3: [command("c", CommandKind.CHECKPOINT), command("s", CommandKind.STOP)],
    }
    reporter, beats = train_under(trainer, at)
    found, steps = tiny.records(reporter), tiny.steps(reporter)
    outcomes = [record for record in found if isinstance(record, Outcome)]
    return {
        "trained": trainer.state.global_step,
        "steps": [step.step for step in steps],
        "unsaid": [sorted(set(BY_NAME) - set(step.values) - set(step.missing)) for step in steps],
        "values": [dict(step.values) for step in steps],
        "missing": dict(steps[-1].missing),
        "logged": [dict(entry) for entry in trainer.state.log_history],
        "outcomes": {o.command_id: [o.state.value, o.before, o.after, o.reason] for o in outcomes},
        "beats": beats,
        "can": dict(reporter.run.capabilities),
        "config": {name: reporter.run.config.get(name) for name in ("kl_estimator", "kl_in", "kl_coef")},
    }


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
