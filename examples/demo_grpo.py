"""One real TRL GRPO run of the demo on the CPU, streamed by the one line that RL Vitals asks for.

    python examples/demo_grpo.py --flavour unhealthy --seconds 150

``unhealthy`` is wrong in two honest ways: its length limit is below the grammar's usual length, and its KL
coefficient is so large that the pull back to the reference drowns the pull of the rewards. ``twin`` is the same
recipe with sane settings. The last line printed is a JSON summary, its ``beta`` read back from the trainer.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")

if TYPE_CHECKING:
    from trl import GRPOTrainer

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "demo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavour:
    max_completion_length: int
    beta: float
    num_iterations: int
    learning_rate: float = 3e-4


FLAVOURS = {
    "unhealthy": Flavour(max_completion_length=10, beta=40.0, num_iterations=1),
    "twin": Flavour(max_completion_length=32, beta=0.2, num_iterations=2),
}


def make_trainer(flavour: Flavour, policy: Path, output: Path, *, seed: int = 7, **overrides: Any) -> GRPOTrainer:
    """A `GRPOTrainer` on the policy in the folder ``policy``; ``overrides`` go to its `GRPOConfig`."""
    import demo_grammar
    from datasets import Dataset
    from transformers import AutoTokenizer, Qwen2ForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    settings: dict[str, Any] = {
        "output_dir": str(output),
        "max_completion_length": flavour.max_completion_length,
        "beta": flavour.beta,
        "num_iterations": flavour.num_iterations,
        "learning_rate": flavour.learning_rate,
        "scale_rewards": "none",
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "gradient_accumulation_steps": 1,
        "lr_scheduler_type": "constant",
        "max_steps": 100_000,
        "save_strategy": "no",
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "disable_tqdm": True,
        "logging_steps": 10,
        "seed": seed,
    }
    return GRPOTrainer(
        model=Qwen2ForCausalLM.from_pretrained(str(policy)),
        processing_class=AutoTokenizer.from_pretrained(str(policy)),
        reward_funcs=demo_grammar.pleasantness,
        args=GRPOConfig(**settings | overrides),
        train_dataset=Dataset.from_dict({"prompt": demo_grammar.prompts()}),
    )


def run(flavour: str, seconds: float, **attach: Any) -> dict[str, Any]:
    """Trains until ``seconds`` are over and tells what became of it."""
    import demo_policy
    import torch

    import rlvitals

    torch.set_num_threads(1)
    policy = demo_policy.load(CACHE)
    with tempfile.TemporaryDirectory(prefix="rlvitals-demo-") as output:
        trainer = make_trainer(FLAVOURS[flavour], policy, Path(output))
        trainer.model.config._name_or_path = "demo/qwen2-tiny"
        reporter = rlvitals.attach(trainer, **attach)
        before = trainer.beta
        trainer.add_callback(_until(time.monotonic() + seconds))
        trainer.train()
        reporter.flush(20.0)
        counters = dict(reporter.counters)
        reporter.close()
    return {
        "flavour": flavour,
        "run": reporter.run.id,
        "steps": trainer.state.global_step,
        "beta_before": before,
        "beta_after": trainer.beta,
        "counters": counters,
    }


def _until(deadline_s: float) -> Any:
    from transformers import TrainerCallback

    class Deadline(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_training_stop = control.should_training_stop or time.monotonic() >= deadline_s

    return Deadline()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--flavour", choices=sorted(FLAVOURS), default="unhealthy")
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--project", default="demo")
    parser.add_argument("--run", help="the run's id (default: a new one)")
    parser.add_argument("--url", help="the service (default: RLVITALS_URL, or the local one)")
    parser.add_argument("--token", help="its token (default: RLVITALS_TOKEN, or the local service's)")
    options = parser.parse_args(argv)
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")
    summary = run(
        options.flavour,
        options.seconds,
        project=options.project,
        run=options.run,
        name=f"demo {options.flavour}",
        url=options.url,
        token=options.token,
        tags=("demo", options.flavour),
    )
    print(json.dumps(summary), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
