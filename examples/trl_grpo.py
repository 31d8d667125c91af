"""GRPO or RLOO with TRL, watched by one line: `rlvitals.attach(trainer)`.

    pip install 'rlvitals[trl]'
    python examples/trl_grpo.py                # on a GPU box: Qwen2.5-0.5B learns to add and to stop
    python examples/trl_grpo.py --rloo         # the same with RLOO
    python examples/trl_grpo.py --cpu          # half a minute without a GPU: a tiny model with random weights

The tiny model writes bytes at random and never stops, so its page is red, and rightly.

Everything that RL Vitals needs is marked. A service is not: start one with ``rlvitals serve``, or send the journal
later with ``rlvitals sync``. Several GPUs: ``accelerate launch examples/trl_grpo.py``.
"""

from __future__ import annotations

import argparse
import random
import re
import string
import tempfile
import warnings
from dataclasses import dataclass
from typing import Any

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

import rlvitals

MODEL = "Qwen/Qwen2.5-0.5B-Instruct"


@dataclass(slots=True)
class Settings:
    """``model`` is a name on the Hub or a folder; without it, a tiny one with random weights is made."""

    model: str = MODEL
    steps: int = 200
    rloo: bool = False
    cpu: bool = False
    vllm: bool = False
    output: str = "trl-grpo"


def train(settings: Settings, **told: Any) -> rlvitals.Reporter:
    """Trains and returns the run; ``told`` goes to `rlvitals.attach`."""
    trainer = make_trainer(settings)

    # RL Vitals: the one line
    vitals = rlvitals.attach(trainer, project="trl-example", **told)

    trainer.train()
    return vitals


def make_trainer(settings: Settings) -> Any:
    kind, config = (RLOOTrainer, RLOOConfig) if settings.rloo else (GRPOTrainer, GRPOConfig)
    model, tokenizer = tiny_policy() if settings.cpu else (settings.model, None)
    arguments = config(
        output_dir=settings.output,
        max_steps=settings.steps,
        num_generations=4 if settings.cpu else 8,
        max_completion_length=16 if settings.cpu else 256,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=1 if settings.cpu else 4,
        learning_rate=1e-2 if settings.cpu else 1e-6,
        beta=0.04,
        logging_steps=1,
        save_steps=50,
        report_to=[],
        use_cpu=settings.cpu,
        bf16=not settings.cpu,
        gradient_checkpointing=not settings.cpu,
        use_vllm=settings.vllm,
        **({"vllm_mode": "colocate"} if settings.vllm else {}),
    )
    return kind(
        model=model,
        processing_class=tokenizer,
        reward_funcs=[lower_case] if settings.cpu else [right_answer, brief],
        args=arguments,
        train_dataset=sums(),
    )


def sums(rows: int = 2000) -> Dataset:
    dice = random.Random(0)
    pairs = [(dice.randint(10, 999), dice.randint(10, 999)) for _ in range(rows)]
    told = [f"What is {a} + {b}? End with the number alone." for a, b in pairs]
    return Dataset.from_dict({"prompt": told, "answer": [a + b for a, b in pairs]})


def right_answer(completions: list[str], answer: list[int], **_: Any) -> list[float]:
    numbers = [re.findall(r"\d+", text.replace(",", "")) for text in completions]
    return [float(bool(found) and int(found[-1]) == right) for found, right in zip(numbers, answer, strict=True)]


def brief(completions: list[str], **_: Any) -> list[float]:
    return [-len(text) / 2000 for text in completions]


def lower_case(completions: list[str], **_: Any) -> list[float]:
    """What a model with random weights can learn in half a minute."""
    return [sum(c in string.ascii_lowercase for c in text) / max(len(text), 1) for text in completions]


def tiny_policy() -> tuple[Any, Any]:
    """Saved to a folder, from which the trainer loads the reference model, too."""
    from plain_grpo import make_model, make_tokenizer

    folder, tokenizer = tempfile.mkdtemp(), make_tokenizer()
    make_model(tokenizer).save_pretrained(folder)
    return folder, tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--output", default="trl-grpo", help="folder of the checkpoints")
    parser.add_argument("--rloo", action="store_true", help="RLOO in the place of GRPO")
    parser.add_argument("--vllm", action="store_true", help="sample with vLLM beside the training")
    parser.add_argument("--cpu", action="store_true", help="a tiny model with random weights, without a GPU")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    settings = Settings(**{**vars(given), "steps": given.steps or (30 if given.cpu else 200)})
    vitals = train(settings)
    print(f"run {vitals.run.id}: {vitals.last_step} steps")


if __name__ == "__main__":
    main()
