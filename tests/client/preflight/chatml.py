"""A small byte-level tokenizer with Qwen's markers and template, healthy unless a test asks for a fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.template import Rendering, render
from rlvitals.preflight.tokenizer import read_tokenizer
from rlvitals.preflight.tokenizer_facts import TokenizerFacts

MARKERS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA_TEMPLATE = (
    "{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content }}<|eot_id|>"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
MERGES = [("Ċ", "Ċ"), ("H", "i"), ("Ġ", "a")]
END_OF_TEXT, TURN_START, TURN_END = 259, 260, 261
SIZE, ROWS = 262, 288


def core(special: Sequence[str] = MARKERS, added: Sequence[str] = ()) -> Tokenizer:
    """256 bytes, three merges, then ``special`` and ``added`` tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate([*alphabet, *("".join(pair) for pair in MERGES)])}
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=MERGES))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in added])
    return tokenizer


def build(
    special: Sequence[str] = MARKERS, added: Sequence[str] = (), template: str | None = TEMPLATE, **settings: Any
) -> PreTrainedTokenizerFast:
    named = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "padding_side": "left", **settings}
    kept = {key: value for key, value in named.items() if value is not None}
    tokenizer: PreTrainedTokenizerFast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=core(special, added), **kept
    )
    tokenizer.chat_template = template
    return tokenizer


def facts(*args: Any, **settings: Any) -> TokenizerFacts:
    return read_tokenizer(build(*args, **settings))


def rendering(tokens: TokenizerFacts, template: str = TEMPLATE) -> Rendering:
    made, error = render(tokens, template)
    assert made is not None, error
    assert not error
    return made


def verdicts(findings: Any) -> list[Verdict]:
    return [finding.verdict for finding in findings]


def only(findings: Any) -> Finding:
    (finding,) = list(findings)
    assert isinstance(finding, Finding)
    return finding
