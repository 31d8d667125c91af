"""A real GRPO trainer that takes milliseconds a step: a byte-level tokenizer and a Qwen2 with random weights."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import AutoTokenizer, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from rlvitals.contract.report import StepReport
from rlvitals.follow import Follower
from rlvitals.reporter import Reporter
from rlvitals.spool import journal_folder

Reward = Callable[..., list[float]]
PROMPTS = [f"say {letter}:" for letter in string.ascii_lowercase[:16]]
CAP = 8


def save_policy(folder: Path) -> Path:
    torch.manual_seed(3)
    tokenizer = _tokenizer()
    config = Qwen2Config(
        vocab_size=len(tokenizer) + 4,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
        bos_token_id=None,
    )
    Qwen2ForCausalLM(config).save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder


def letters(completions: list[str], **_: Any) -> list[float]:
    """A reward with contrast: how many lower-case letters there are, and a little for variety."""
    return [sum(c in string.ascii_lowercase for c in text) + len(set(text)) / 100 for text in completions]


def make_trainer(
    policy: Path, output: Path, *, reward: Reward = letters, adapter: Any = None, **settings: Any
) -> GRPOTrainer:
    """Two groups of four in each step on one CPU thread; ``settings`` go to the `GRPOConfig`.

    ``adapter`` is the configuration of a PEFT adapter, which is trained in the place of the model.
    """
    defaults: dict[str, Any] = {
        "output_dir": str(output),
        "max_completion_length": CAP,
        "beta": 0.05,
        "learning_rate": 1e-2,
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "lr_scheduler_type": "constant",
        "max_steps": 4,
        "save_strategy": "no",
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "disable_tqdm": True,
        "logging_steps": 10,
        "seed": 5,
    }
    return GRPOTrainer(
        model=Qwen2ForCausalLM.from_pretrained(str(policy)),
        processing_class=AutoTokenizer.from_pretrained(str(policy)),
        reward_funcs=reward,
        args=GRPOConfig(**defaults | settings),
        train_dataset=Dataset.from_dict({"prompt": PROMPTS}),
        eval_dataset=Dataset.from_dict({"prompt": PROMPTS[:4]}),
        peft_config=adapter,
    )


def weights_hash(trainer: GRPOTrainer) -> str:
    """Of every bit of the policy's weights."""
    digest = hashlib.sha256()
    for name, value in sorted(trainer.model.state_dict().items()):
        digest.update(name.encode() + value.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


def records(reporter: Reporter) -> list[Any]:
    """All that the reporter's present attempt has journalled, in order."""
    folder = journal_folder(reporter.settings.spool, reporter.run.id, reporter.attempt)
    follower = Follower(folder)
    found = [item.record for item in follower.read(1_000_000)]
    follower.close()
    return found


def steps_of(found: list[Any]) -> list[StepReport]:
    return [record for record in found if isinstance(record, StepReport)]


def steps(reporter: Reporter) -> list[StepReport]:
    return steps_of(records(reporter))


class AtStepEnd(TrainerCallback):
    """Calls ``act(step)`` when a step ends, before our own callback if it was added before `attach`.

    ``stopping`` ends the training at this step.
    """

    def __init__(self, act: Callable[[int], object]) -> None:
        self._act, self.stopping = act, False

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._act(state.global_step)
        control.should_training_stop = control.should_training_stop or self.stopping


def _tokenizer() -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(BPE({letter: place for place, letter in enumerate(alphabet)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token="<eos>",
        pad_token="<pad>",
        padding_side="left",
        model_input_names=["input_ids", "attention_mask"],
    )
