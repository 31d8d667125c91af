"""Completions of a run as a client sends them: healthy or broken, with ids without a token, with scores."""

from __future__ import annotations

import math
from typing import Any

from rlvitals.contract import codec
from rlvitals.contract.report import Text, TokenDetail

EVIL = "<img src=x onerror=alert(1)> \u202e@everyone"
UNASSIGNED, SPECIAL, HALF = 151_900, 151_645, 60_000
PROMPT = "What is 2 + 3? 用中文回答。"


def spelt(words: str) -> tuple[tuple[int, ...], TokenDetail]:
    """A token a byte, its id the byte's number."""
    data = words.encode()
    return tuple(data), TokenDetail(pieces={str(byte): f"{byte:02x}" for byte in set(data)})


def healthy(step: int, sample: int, seq: int, words: str = "", **other: Any) -> Text:
    words = words or f"The answer at step {step} is {2 + 3}. 答案是五。"
    ids, detail = spelt(words)
    return Text(
        **{
            "seq": seq,
            "step": step,
            "sample": sample,
            "completion": words,
            "prompt": PROMPT,
            "token_ids": ids,
            "reward": 1.0,
            "tokens": detail,
            **other,
        }
    )


def damaged(step: int, sample: int, seq: int) -> Text:
    """Two halves of characters, an id that no token has, a zero-width space, hostile text, scores of each kind."""
    words = f"The sum {EVIL} is \u200b"
    ids, detail = spelt(words)
    ids = (*ids, HALF, ord("5"), UNASSIGNED, HALF, SPECIAL)
    logp = [*(-0.1 * (n % 30) for n in range(len(ids) - 5)), -9.0, math.nan, -math.inf, None, -0.5]
    ref = [*(-0.1 * (n % 30) for n in range(len(ids) - 5)), -0.5, -0.5, -0.5, -0.5, -0.5]
    return Text(
        seq=seq,
        step=step,
        sample=sample,
        completion=f"{words}\ufffd5\ufffd<|im_end|>",
        prompt=PROMPT,
        token_ids=ids,
        reward=math.nan,
        truncated=True,
        invalid_utf8=2,
        why="worst_utf8",
        tokens=TokenDetail(
            pieces={**detail.pieces, str(ord("5")): "35", str(HALF): "e4bd", str(SPECIAL): b"<|im_end|>".hex()},
            kinds={str(UNASSIGNED): "unassigned", str(SPECIAL): "special"},
            scores={"logp": tuple(logp), "ref_logp": tuple(ref), "advantage": (-1.5,) * len(ids)},
        ),
    )


def report_of(texts: list[Text], *, run: str = "r1", attempt: str = "t1", writer: str = "main") -> dict[str, Any]:
    return {
        "run": {"id": run},
        "attempt": attempt,
        "writer": writer,
        "texts": [codec.encode(text) for text in texts],
    }


def usual(steps: int = 24) -> list[Text]:
    """Three a step; the last of each step from three quarters on is damaged."""
    found = []
    for step in range(steps):
        seq = 10 * step + 1
        found += [healthy(step, 0, seq), healthy(step, 1, seq + 1, reward=0.25 * (step % 4), why="worst_length")]
        found.append(damaged(step, 2, seq + 2) if step >= steps * 3 // 4 else healthy(step, 2, seq + 2))
    return found
