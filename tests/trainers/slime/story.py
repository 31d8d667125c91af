"""A job as slime lays it out: a rollout manager and two training ranks, processes of their own, in slime's order.

``python -m tests.trainers.slime.story manager`` and, with the variables of torch.distributed, ``… trainer``. Loss,
samples and gloo group are of slime itself; the calls of its driver and the model of Megatron are stood in for.
"""

from __future__ import annotations

import json
import os
import sys
import types
from argparse import Namespace
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, os.environ["SLIME_CHECKOUT"])

import torch
import torch.distributed as dist

from tests.trainers.slime import job

ROLLOUTS_MAX, DEADLINE = 2_000, timedelta(seconds=120)
LETTERS = 20
BETA = 20.0


def arguments() -> Namespace:
    folder = Path(os.environ["STORY_FOLDER"])
    return job.arguments(
        hf_checkpoint=os.environ["STORY_POLICY"], kl_loss_coef=BETA, save=str(folder / "save"),
        num_rollout=ROLLOUTS_MAX, reward_key=None, wandb_key="never-told",
    )  # fmt: skip


def store(*, master: bool) -> dist.TCPStore:
    """By which the driver's calls and their answers go; slime has Ray for it."""
    return dist.TCPStore("127.0.0.1", int(os.environ["STORY_PORT"]), is_master=master, timeout=DEADLINE)


def manager() -> None:
    from slime.utils.types import Sample

    from rlvitals.integrations import slime

    args, calls, made = arguments(), store(master=True), 0
    torch.manual_seed(3)
    for rollout_id in range(ROLLOUTS_MAX):
        samples = []
        for n in range(4):
            tokens = torch.randint(3, 3 + LETTERS, (6,)).tolist()
            samples.append(
                Sample(
                    index=n, group_index=n // 2, prompt="say:", tokens=[1, 2, *tokens[: 3 + n % 2]], response="…",
                    response_length=3 + n % 2, reward=float(n % 2), status=Sample.Status.COMPLETED,
                    rollout_log_probs=[-1.0] * (3 + n % 2),
                )
            )  # fmt: skip
        slime.log_rollout(rollout_id, args, samples, None, 0.01)
        made += 1
        calls.set(f"rollout-{rollout_id}", "made")
        if calls.get(f"trained-{rollout_id}") == b"stopped":
            break
    from rlvitals.integrations.slime import rollout

    rollout.forget()
    print(json.dumps({"rollouts": made}))
    for rank in range(2):  # the store goes last
        calls.get(f"left-{rank}")


def trainer() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=DEADLINE)
    from slime.utils import distributed_utils

    distributed_utils.init_gloo_group()
    from megatron.core import mpu

    mpu.get_data_parallel_rank = lambda with_context_parallel=False: dist.get_rank()
    model = sys.modules["slime.backends.megatron_utils.model"] = types.ModuleType("model")
    model.train_one_step, model.save = train_one_step, save  # type: ignore[attr-defined]
    from rlvitals.integrations import slime
    from rlvitals.integrations.slime import train
    from rlvitals.integrations.slime.flags import StoppedOnRequest

    args, calls, coefficients, steps = arguments(), store(master=False), [], 0
    slime.init(args)  # where slime starts a rank
    logits = torch.nn.Parameter(torch.randn(1, 24, 32, generator=torch.Generator().manual_seed(7)))
    optimizer = torch.optim.SGD([logits], lr=1e-5)
    told, data = "ok", sampled(args, logits.detach())
    for rollout_id in range(ROLLOUTS_MAX):
        calls.get(f"rollout-{rollout_id}")
        try:
            for step_id in range(2):
                model.train_one_step(args, rollout_id, step_id, data, [logits], optimizer, None)  # type: ignore[attr-defined]
                coefficients.append(args.kl_loss_coef)
                steps += 1
        except StoppedOnRequest:
            told = "stopped"
        if dist.get_rank() == 0:
            calls.set(f"trained-{rollout_id}", told)
        if told == "stopped":
            break
    train.forget()
    print(json.dumps({"coefficients": coefficients, "steps": steps, "logits": float(logits.double().sum())}))
    calls.set(f"left-{dist.get_rank()}", "yes")
    dist.destroy_process_group()


def sampled(args: Namespace, logits: torch.Tensor) -> dict[str, Any]:
    """What the policy at the start would have written, a little away from its reference and its sampler."""
    from slime.backends.megatron_utils.loss import get_log_probs_and_entropy

    data = job.batch()
    lengths = {name: data[name] for name in ("unconcat_tokens", "total_lengths", "response_lengths")}
    _, seen = get_log_probs_and_entropy(logits, args=args, with_entropy=False, **lengths)
    noise = torch.Generator().manual_seed(11)
    old = [value.detach() for value in seen["log_probs"]]
    return data | {
        "log_probs": old,
        "ref_log_probs": [value + 0.1 * torch.randn(value.shape, generator=noise) for value in old],
        "rollout_log_probs": [value + 0.001 * torch.randn(value.shape, generator=noise) for value in old],
    }


def train_one_step(
    args: Namespace, rollout_id: int, step_id: int, data: Any, model: Any, optimizer: Any, scheduler: Any
) -> tuple[dict[str, Any], float]:
    """In the order of slime's own: gradients cleared, hook, forward and backward, optimizer."""
    from slime.backends.megatron_utils import loss
    from slime.utils.misc import load_function

    optimizer.zero_grad()
    hook = load_function(args.custom_megatron_before_train_step_hook_path)
    hook(args, rollout_id, step_id, model, optimizer, scheduler)
    value, _, log = loss.loss_function(args, data, 1, args.global_batch_size, model[0])
    value.backward()
    dist.all_reduce(model[0].grad)
    norm = float(model[0].grad.norm())
    optimizer.step()
    return dict(zip(log["keys"], log["values"][1:] / args.global_batch_size, strict=True)), norm


def save(iteration: int, model: Any, optimizer: Any, scheduler: Any) -> None:
    folder = Path(arguments().save) / f"iter_{iteration:07d}"
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(model[0], folder / f"{dist.get_rank()}.pt")


if __name__ == "__main__":
    {"manager": manager, "trainer": trainer}[sys.argv[1]]()
