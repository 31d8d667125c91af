"""Every kind of tokenizer gives the same facts."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from rlvitals.preflight.tokenizer import read_tokenizer
from rlvitals.preflight.tokenizer_facts import TokenizerFacts, is_marker
from tests.client.preflight.chatml import MARKERS, SIZE, TEMPLATE, TURN_END, build, core, facts
from tests.client.probes import real


@pytest.fixture(params=["object", "processor", "folder", "file in a folder", "file alone", "tokenizers"])
def read(request: pytest.FixtureRequest, tmp_path: Path) -> TokenizerFacts:
    kind = request.param
    if kind == "object":
        return facts()
    if kind == "processor":
        return read_tokenizer(type("Processor", (), {"tokenizer": build()})())
    if kind == "tokenizers":
        return read_tokenizer(core())
    if kind == "file alone":
        core().save(str(tmp_path / "tokenizer.json"))
        return read_tokenizer(tmp_path / "tokenizer.json")
    build().save_pretrained(tmp_path)
    return read_tokenizer(str(tmp_path) if kind == "folder" else tmp_path / "tokenizer.json")


def test_each_form_of_one_tokenizer_has_its_ids_and_texts(read: TokenizerFacts) -> None:
    assert read.size == SIZE
    assert read.special == {259, 260, 261}
    assert read.added[TURN_END] == "<|im_end|>"
    ids = read.encode("<|im_start|>user\nHi<|im_end|>")
    assert ids[-1] == TURN_END
    assert read.decode(ids) == "<|im_start|>user\nHi<|im_end|>"


def test_a_hugging_face_tokenizer_has_names_template_and_sides() -> None:
    read = facts()
    assert (read.eos, read.pad, read.bos) == (TURN_END, 259, None)
    assert read.chat_template == TEMPLATE
    assert read.padding_side == "left"


def test_of_named_templates_the_default_one_counts() -> None:
    tokenizer = build(template=None)
    tokenizer.chat_template = {"default": TEMPLATE, "tool_use": "x"}
    assert read_tokenizer(tokenizer).chat_template == TEMPLATE
    assert facts(template=None).chat_template is None


def test_a_tiktoken_encoding(encoding: Any) -> None:
    read = read_tokenizer(encoding)
    assert read.tokens[0] == "!"
    assert read.eos == 151_643
    assert read.encode("<|im_start|>assistant\n") == [151_644, 77_091, 198]


def test_a_sentencepiece_model() -> None:
    sentencepiece = pytest.importorskip("sentencepiece", reason="NO SENTENCEPIECE TOKENIZER: it is not installed")
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat on the mat", "a cat and a hat"] * 8),
        model_writer=made,
        model_type="bpe",
        vocab_size=300,
        byte_fallback=True,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    read = read_tokenizer(sentencepiece.SentencePieceProcessor(model_proto=made.getvalue()))
    assert read.tokens[read.eos or 0] == "</s>"
    assert {0, 1, 2} <= read.special
    assert read.pad is None
    assert read.decode(read.encode("the hat")) == "the hat"


def test_another_object_is_refused_by_type() -> None:
    with pytest.raises(TypeError, match=r"tokenizer: expected .* got dict"):
        read_tokenizer({})


def test_ids_are_shown_as_text_and_holes_as_such() -> None:
    read = facts()
    newline = read.encode("\n")[0]
    assert read.show([TURN_END, newline, 280]) == f"261 '<|im_end|>', {newline} '\\n', 280 (no token)"
    byte = read.encode("£")[0]
    assert read.show([byte]) == f"{byte} {read.tokens[byte]}"


def test_digests_tell_parts_apart() -> None:
    one, other = facts().digests(), facts(special=(*MARKERS, "<x>")).digests()
    assert one["chat template"] == other["chat template"]
    assert one["vocabulary"] != other["vocabulary"]
    assert one["added tokens"] != other["added tokens"]


@pytest.mark.parametrize("text", ["<|im_end|>", "<｜User｜>", "<think>", "</tool_call>", "[INST]", "[/INST]"])
def test_markers_are_barred_or_known_tags(text: str) -> None:
    assert is_marker(text)


@pytest.mark.parametrize("text", ["<table>", "▁▁", "Hi", "", "|", "<s>", "[A]"])
def test_html_blanks_and_words_are_no_markers(text: str) -> None:
    assert not is_marker(text)


@pytest.mark.parametrize("name", ["tekken_240911", "mistral_v3"])
def test_a_tokenizer_of_mistral_common(name: str) -> None:
    try:
        tokenizer = real.load(name)
    except real.Unavailable as error:
        pytest.skip(f"NO MISTRAL TOKENIZER: {error}")
    read = read_tokenizer(tokenizer)
    assert read.tokens[read.eos or 0] == "</s>"
    assert read.eos in read.special
    assert read.decode(read.encode("Hello, 世界 🎣")) == "Hello, 世界 🎣"
