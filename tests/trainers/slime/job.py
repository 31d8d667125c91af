"""slime's own code with our flags set, in one process of its environment; what happened, as a JSON line.

``python job.py loss``: its policy loss on real tensors, with our hold and without, under each estimator of the KL.
``python job.py samples``: its own ``Sample`` and ``log_rollout_data`` with our function in the flag.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

sys.path.insert(0, os.environ["SLIME_CHECKOUT"])
sys.path.insert(0, str(Path(__file__).parents[3]))

import torch

from tests.trainers.slime import megatron_stub

megatron_stub.install()

from rlvitals.contract.report import StepReport, Text  # noqa: E402
from rlvitals.follow import Follower  # noqa: E402
from rlvitals.spool import journals  # noqa: E402

OURS = "rlvitals.integrations.slime"


def arguments(**changes: Any) -> Namespace:
    told: dict[str, Any] = {
        "hf_checkpoint": None,
        "rollout_batch_size": 2,
        "n_samples_per_prompt": 2,
        "global_batch_size": 2,
        "rollout_max_response_len": 4,
        "advantage_estimator": "grpo",
        "loss_type": "policy_loss",
        "use_kl_loss": True,
        "kl_loss_coef": 0.1,
        "kl_loss_type": "low_var_kl",
        "kl_coef": 0.0,
        "use_unbiased_kl": False,
        "entropy_coef": 0.0,
        "eps_clip": 0.2,
        "eps_clip_high": 0.28,
        "eps_clip_c": None,
        "use_opsm": False,
        "use_tis": False,
        "get_mismatch_metrics": False,
        "use_rollout_logprobs": False,
        "use_rollout_entropy": False,
        "calculate_per_token_loss": False,
        "rollout_temperature": 1.0,
        "rollout_top_p": 1.0,
        "log_probs_chunk_size": -1,
        "allgather_cp": False,
        "true_on_policy_mode": False,
        "custom_pg_loss_reducer_function_path": None,
        "recompute_loss_function": False,
        "custom_rollout_log_function_path": f"{OURS}.log_rollout",
        "custom_megatron_before_train_step_hook_path": f"{OURS}.before_train_step",
    }
    return Namespace(**told | changes)


def batch(gap: float = 0.0) -> dict[str, Any]:
    """Three samples of 4 prompt tokens; ``gap`` is put between the reference and the policy at one token."""
    torch.manual_seed(1)
    sizes, prompt = [5, 3, 4], 4
    tokens = [torch.randint(0, 32, (prompt + size,)) for size in sizes]
    old = [-torch.rand(size) - 0.5 for size in sizes]
    ref = [lp + 0.1 * torch.randn_like(lp) for lp in old]
    ref[0][2] += gap
    return {
        "unconcat_tokens": tokens,
        "tokens": tokens,
        "total_lengths": [prompt + size for size in sizes],
        "response_lengths": sizes,
        "loss_masks": [torch.ones(size) for size in sizes],
        "rollout_mask_sums": [torch.tensor(float(size)) for size in sizes],
        "log_probs": old,
        "ref_log_probs": ref,
        "rollout_log_probs": [lp + 0.01 * torch.randn_like(lp) for lp in old],
        "advantages": [torch.full((size,), 1.0 - n) for n, size in enumerate(sizes)],
    }


def loss_of(args: Namespace, data: dict[str, Any]) -> tuple[float, list[float], dict[str, float]]:
    """slime's loss through its own dispatch, its gradient, and what it would log."""
    from slime.backends.megatron_utils import loss as module

    torch.manual_seed(7)
    logits = torch.randn(1, sum(data["total_lengths"]), 32, requires_grad=True)
    value, _, log = module.loss_function(args, data, 1, args.global_batch_size, logits)
    value.backward()
    logged = dict(zip(log["keys"], log["values"][1:].tolist(), strict=True))
    return float(value), logits.grad.flatten().tolist(), logged


def losses() -> dict[str, Any]:
    from rlvitals.integrations import slime
    from rlvitals.integrations.slime import train

    told: dict[str, Any] = {}
    for name in ("k1", "k2", "k3", "low_var_kl"):
        args, data = arguments(kl_loss_type=name), batch()
        plain = loss_of(args, data)
        slime.before_train_step(args, 0, 0, [], None, None)
        watched = loss_of(args, data)
        slime.before_train_step(args, 0, 1, [], None, None)
        train.forget()
        told[name] = {"same": plain == watched, "logged": watched[2], "step": last_step("train")}
    args, data = arguments(), batch(gap=95.0)
    slime.postprocess(args, 3, data)
    told["ahead"] = last_step("train")
    value, gradient, _ = loss_of(args, data)
    told["poisoned"] = {"finite_loss": value == value, "nan_gradient": any(g != g for g in gradient)}
    train.forget()
    reused = arguments(global_batch_size=4)
    slime.before_train_step(reused, 0, 0, [], None, None)
    loss_of(reused, {name: value for name, value in batch().items() if name != "log_probs"})
    slime.before_train_step(reused, 1, 0, [], None, None)
    told["reused"] = last_step("train")
    train.forget()
    return told


def samples() -> dict[str, Any]:
    from slime.observability.rollout_metrics import log_rollout_data
    from slime.utils.types import Sample

    args = arguments(
        load_debug_rollout_data=None, log_reward_category=None, reward_key=None, rollout_num_gpus=1,
        wandb_always_use_train_step=False, use_wandb=False, use_tensorboard=False,
        sglang_speculative_algorithm=None,
    )  # fmt: skip
    made = [
        Sample(
            index=n, group_index=n // 2, prompt="p", tokens=[1, 2, *range(3, 3 + n + 1)], response="x" * n,
            response_length=n + 1, reward=float(n == 0),
            status=Sample.Status.TRUNCATED if n == 3 else Sample.Status.COMPLETED,
            rollout_log_probs=[-0.5] * (n + 1),
        )
        for n in range(4)
    ]  # fmt: skip
    log_rollout_data(2, args, made, {"rollout/own": 1.5}, 2.5)
    return {"step": last_step("rollout"), "texts": len(of_kind("rollout", Text))}


def of_kind(role: str, kind: type) -> list[Any]:
    found = []
    for journal in journals(Path(os.environ["RLVITALS_DIR"])):
        if f".{role}." in journal.name:
            follower = Follower(journal)
            found += [item.record for item in follower.read(100_000) if isinstance(item.record, kind)]
            follower.close()
    return found


def last_step(role: str) -> dict[str, Any]:
    step = of_kind(role, StepReport)[-1]
    extremes = {name: extreme.token_id for name, extreme in step.extremes.items()}
    return {"step": step.step, "values": dict(step.values), "missing": dict(step.missing), "tokens": extremes}


if __name__ == "__main__":
    print("\n" + json.dumps({"loss": losses, "samples": samples}[sys.argv[1]]()))
