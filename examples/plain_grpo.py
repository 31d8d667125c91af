"""GRPO written by hand, without a trainer, watched by the one ``with`` block: under a minute on a CPU.

    python examples/plain_grpo.py --steps 30

A tiny Qwen2 with random weights learns to write lower-case letters. Everything that RL Vitals needs is marked; a
service is not (start one with ``rlvitals serve``, or send the journal later with ``rlvitals sync``). On a GPU box
add ``--device cuda``.
"""

from __future__ import annotations

import argparse
import os
import string
import sys
import warnings
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # a model this small is faster on one thread

import torch
from torch import Tensor
from torch.nn.functional import log_softmax
from torch.nn.utils import clip_grad_norm_
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

import rlvitals

PROMPTS = tuple(f"say {letter}:" for letter in string.ascii_lowercase[:4])
GROUP, CAP, EPSILON, MICRO_BATCHES = 4, 16, 0.2, 2


@dataclass(slots=True)
class Settings:
    """``beta`` is read in every step, so that it can be changed while the job runs."""

    steps: int = 30
    beta: float = 0.05
    learning_rate: float = 1e-2
    device: str = "cpu"


def train(settings: Settings, **told: Any) -> rlvitals.Vitals:
    """Trains and returns the run; ``told`` goes to `rlvitals.run`."""
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    policy, reference = make_model(tokenizer).to(settings.device), make_model(tokenizer).to(settings.device)
    reference.load_state_dict(policy.state_dict())
    optimizer = torch.optim.AdamW(policy.parameters(), lr=settings.learning_rate)

    # RL Vitals: the one block
    with rlvitals.run(
        project="plain-loop",
        model=policy,
        optimizer=optimizer,
        tokenizer=tokenizer,
        stop_ids=[tokenizer.eos_token_id],
        length_cap=CAP,
        group_size=GROUP,
        kl_coef=lambda: settings.beta,
        kl_estimator="k3",
        loss_type="grpo",
        accumulation=MICRO_BATCHES,
        **told,
    ) as vitals:
        # RL Vitals: what may be asked of this loop
        vitals.on("set_kl_coef", lambda value: setattr(settings, "beta", value))
        vitals.on("checkpoint", lambda step: save(policy, step))
        for step in range(1, settings.steps + 1):
            with vitals.phase("rollout"):
                ids, mask, old = sample(policy, tokenizer, settings.device)
            completions = tokenizer.batch_decode(ids, skip_special_tokens=True)
            rewards = torch.tensor([letters(text) for text in completions])
            advantages = advantages_of(rewards).to(settings.device)
            prompts = [prompt for prompt in PROMPTS for _ in range(GROUP)]
            vitals.rollout(ids, mask.sum(1), rewards=rewards, prompts=prompts, texts=completions)  # RL Vitals

            for rows in torch.arange(len(ids), device=settings.device).chunk(MICRO_BATCHES):
                batch = ids[rows], mask[rows], old[rows], advantages[rows]
                loss, logp, ref = loss_of(policy, reference, tokenizer, settings.beta, rows, batch)
                loss.backward()
                vitals.loss(  # RL Vitals
                    loss,
                    logp=logp,
                    old=old[rows],
                    ref=ref,
                    advantages=advantages[rows],
                    mask=mask[rows],
                    ids=ids[rows],
                    rows=rows,
                )
            vitals.gradients()  # RL Vitals: optional, before clipping
            vitals.gradient(clip_grad_norm_(policy.parameters(), 1.0))  # RL Vitals
            optimizer.step()
            optimizer.zero_grad()

            vitals.step(
                step, epoch=step / len(PROMPTS)
            )  # RL Vitals: ends the step, takes commands, holds in a pause
            print(f"step {step}: reward {rewards.mean():.2f}", flush=True)
            if vitals.should_stop:  # RL Vitals
                break
    return vitals


def sample(policy: Any, tokenizer: Any, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Completions (B, T), the mask of their tokens, and their log-probs under the weights that sampled them."""
    whole, width = prompt_ids(tokenizer, device).repeat_interleave(GROUP, 0), CAP
    begin = whole.shape[1]
    with torch.no_grad():
        for _ in range(width):
            chances = log_softmax(policy(whole).logits[:, -1].float(), -1).exp()
            whole = torch.cat([whole, torch.multinomial(chances, 1)], 1)
        ids = whole[:, begin:]
        ended = ids == tokenizer.eos_token_id
        mask = (ended.long().cumsum(1) - ended.long()) == 0
        rows = torch.arange(len(ids), device=device)
        return ids, mask, logprobs(policy, tokenizer, rows, ids)


def logprobs(model: Any, tokenizer: Any, rows: Tensor, ids: Tensor) -> Tensor:
    """(b, T) log-probs of the completions ``ids`` (b, T), which answer the prompts of ``rows`` (b,)."""
    prompts = prompt_ids(tokenizer, str(ids.device))[rows // GROUP]
    logits = model(torch.cat([prompts, ids], 1)).logits[:, prompts.shape[1] - 1 : -1].float()
    return log_softmax(logits, -1).gather(2, ids[:, :, None])[:, :, 0]


def loss_of(
    policy: Any,
    reference: Any,
    tokenizer: Any,
    beta: float,
    rows: Tensor,
    batch: tuple[Tensor, Tensor, Tensor, Tensor],
) -> tuple[Tensor, Tensor, Tensor]:
    """GRPO's clipped loss with the k3 estimator, and the log-probs that it came from."""
    ids, mask, old, advantages = batch
    logp = logprobs(policy, tokenizer, rows, ids)
    with torch.no_grad():
        ref = logprobs(reference, tokenizer, rows, ids)
    ratio, pull = (logp - old).exp(), advantages[:, None]
    gain = torch.minimum(ratio * pull, ratio.clamp(1 - EPSILON, 1 + EPSILON) * pull)
    kl = (ref - logp).exp() - (ref - logp) - 1
    by_row = ((beta * kl - gain) * mask).sum(1) / mask.sum(1)
    return by_row.mean() / MICRO_BATCHES, logp, ref


def advantages_of(rewards: Tensor) -> Tensor:
    groups = rewards.view(-1, GROUP)
    return ((groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 1e-4)).view(-1)


def letters(text: str) -> float:
    return sum(char in string.ascii_lowercase for char in text) + len(set(text)) / 100


def save(policy: Any, step: int) -> str:
    folder = f"plain-grpo/checkpoint-{step}"
    policy.save_pretrained(folder)
    return folder


def prompt_ids(tokenizer: Any, device: str) -> Tensor:
    return torch.tensor(tokenizer(list(PROMPTS))["input_ids"], device=device)


def make_tokenizer() -> PreTrainedTokenizerFast:
    """One token a byte."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE({letter: place for place, letter in enumerate(alphabet)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<eos>", pad_token="<pad>")


def make_model(tokenizer: PreTrainedTokenizerFast) -> Qwen2ForCausalLM:
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
        bos_token_id=None,
    )
    return Qwen2ForCausalLM(config)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--name", default="", help="the run's name")
    options = parser.parse_args(argv)
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")
    train(Settings(steps=options.steps, device=options.device), name=options.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
