"""Writes what a job needs: a tiny policy with random weights, a byte-level tokenizer, prompts, a reward.

Run by the interpreter of an environment: ``python policy.py FOLDER``.
"""

from __future__ import annotations

import string
import sys
from pathlib import Path

import pandas as pd
import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

TEMPLATE = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
REWARD = '''"""A reward with contrast: the share of lower-case letters, and a little for variety."""


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **_):
    letters = sum(c.islower() and c.isascii() for c in solution_str)
    return letters / 8 + len(set(solution_str)) / 100
'''


def tokenizer() -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(BPE({letter: place for place, letter in enumerate(alphabet)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|pad|>", padding_side="left"
    )
    made.chat_template = TEMPLATE
    return made


def write(folder: Path) -> None:
    torch.manual_seed(3)
    words = tokenizer()
    config = Qwen2Config(
        vocab_size=len(words) + 4,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
        bos_token_id=None,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
        tie_word_embeddings=False,
    )
    Qwen2ForCausalLM(config).save_pretrained(str(folder / "policy"))
    words.save_pretrained(str(folder / "policy"))
    rows = [
        {
            "data_source": "letters",
            "prompt": [{"role": "user", "content": f"say {letter}:"}],
            "ability": "letters",
            "reward_model": {"style": "rule", "ground_truth": letter},
            "extra_info": {"index": number, "split": "train"},
        }
        for number, letter in enumerate(string.ascii_lowercase[:16])
    ]
    for split in ("train", "test"):
        pd.DataFrame(rows).to_parquet(folder / f"{split}.parquet")
    (folder / "reward.py").write_text(REWARD)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
