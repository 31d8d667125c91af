"""slime's loss in a loop of its plug-in contracts, with a policy that takes its time; our hooks are switched.

``python -m tests.trainers.slime.loop`` with the variables of `hook_switch`. The rollout's function, the hook
before a step and the taps on loss and optimizer step take part or do not; slime's driver and Megatron stand in.
"""

from __future__ import annotations

import os
import sys
import types
from argparse import Namespace
from pathlib import Path
from typing import Any

sys.path.insert(0, os.environ["SLIME_CHECKOUT"])

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from tests.trainers.slime import job  # stands in for Megatron

import hook_switch  # isort: skip

SAMPLES, PROMPT, RESPONSE, VOCABULARY = 8, 16, 112, 2048
BOUNDARY_RUNS = len(hook_switch.TURNS) + 1


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = sys.modules["slime.backends.megatron_utils.model"] = types.ModuleType("model")
    model.train_one_step = train_one_step  # type: ignore[attr-defined]
    from rlvitals.integrations import slime
    from rlvitals.integrations.slime import rollout, train

    folder = Path(os.environ["LOOP_FOLDER"])
    args = job.arguments(
        hf_checkpoint=os.environ["LOOP_POLICY"], save=str(folder / "save"), num_rollout=BOUNDARY_RUNS,
        reward_key=None, rollout_batch_size=SAMPLES // 2, global_batch_size=SAMPLES,
        rollout_max_response_len=RESPONSE,
    )  # fmt: skip
    slime.init(args)  # where slime starts a rank
    policy = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=VOCABULARY, hidden_size=256, intermediate_size=512, num_hidden_layers=4,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
        )
    )  # fmt: skip
    optimizer = torch.optim.SGD(policy.parameters(), lr=1e-5)
    data, samples = sampled(args, policy), drawn()
    for rollout_id in range(BOUNDARY_RUNS):
        if hook_switch.on():
            slime.log_rollout(rollout_id, args, samples, None, 0.01)
        model.train_one_step(args, rollout_id, 0, data, [policy], optimizer, None)  # type: ignore[attr-defined]
    train.forget()
    rollout.forget()


def train_one_step(
    args: Namespace, rollout_id: int, step_id: int, data: Any, model: Any, optimizer: Any, scheduler: Any
) -> tuple[dict[str, Any], float]:
    """In the order of slime's own: gradients cleared, hook, forward and backward, optimizer."""
    from slime.backends.megatron_utils import loss
    from slime.utils.misc import load_function

    optimizer.zero_grad()
    if hook_switch.on():
        hook = load_function(args.custom_megatron_before_train_step_hook_path)
        hook(args, rollout_id, step_id, model, optimizer, scheduler)
    value, _, log = loss.loss_function(args, data, 1, args.global_batch_size, logits_of(model[0], data))
    value.backward()
    norm = float(torch.nn.utils.clip_grad_norm_(model[0].parameters(), 1.0))
    optimizer.step()
    return dict(zip(log["keys"], log["values"][1:] / args.global_batch_size, strict=True)), norm


def logits_of(policy: Any, data: Any) -> Any:
    """(1, T, V) of the samples one behind the other, as Megatron packs them."""
    found = policy(torch.stack(data["unconcat_tokens"])).logits
    return found.reshape(1, -1, found.shape[-1])


def sampled(args: Namespace, policy: Any) -> dict[str, Any]:
    """What the policy at the start would have written, a little away from its reference and its sampler."""
    from slime.backends.megatron_utils.loss import get_log_probs_and_entropy

    tokens = [torch.randint(3, VOCABULARY, (PROMPT + RESPONSE,)) for _ in range(SAMPLES)]
    data: dict[str, Any] = {
        "unconcat_tokens": tokens,
        "tokens": tokens,
        "total_lengths": [PROMPT + RESPONSE] * SAMPLES,
        "response_lengths": [RESPONSE] * SAMPLES,
        "loss_masks": [torch.ones(RESPONSE) for _ in tokens],
        "rollout_mask_sums": [torch.tensor(float(RESPONSE)) for _ in tokens],
        "advantages": [torch.full((RESPONSE,), (-1.0) ** n) for n in range(SAMPLES)],
    }
    lengths = {name: data[name] for name in ("unconcat_tokens", "total_lengths", "response_lengths")}
    with torch.no_grad():
        logits = logits_of(policy, data)
        _, seen = get_log_probs_and_entropy(logits, args=args, with_entropy=False, **lengths)
    old = [value.detach() for value in seen["log_probs"]]
    near = {"ref_log_probs": 0.1, "rollout_log_probs": 0.001}
    return data | {"log_probs": old} | {n: [v + s * torch.randn_like(v) for v in old] for n, s in near.items()}


def drawn() -> list[Any]:
    from slime.utils.types import Sample

    return [
        Sample(
            index=n, group_index=n // 2, prompt="say:",
            tokens=torch.randint(3, 250, (PROMPT + RESPONSE,)).tolist(), response="…",
            response_length=RESPONSE, reward=float(n % 2), status=Sample.Status.COMPLETED,
            rollout_log_probs=[-1.0] * RESPONSE,
        )
        for n in range(SAMPLES)
    ]  # fmt: skip


if __name__ == "__main__":
    main()
