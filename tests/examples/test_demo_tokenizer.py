"""The demo's tokenizer is Qwen's: the same ids as tiktoken makes of the same ranks, on text of many kinds."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.examples.conftest import CACHE

tiktoken = pytest.importorskip("tiktoken", reason="the demo's packages are not installed")
pytest.importorskip("transformers", reason="the TRL extra is not installed")

SAMPLES = [
    "Forecast for Oslo on Monday: sunny at noon, with light wind from the sea.",
    "def f(x):\n\treturn  [x**2 for x in range(10)]\r\n\r\n",
    "他走进 命令 行，说：“你好！”",
    "żółć naïve Straße ﬁ",
    "नमस्ते दुनिया · བོད་ཡིག · አማርኛ · 한국어",
    "👍🏽 👨‍👩‍👧 🇳🇴 𝒫 \u200b\ufeff",
    "it's we'LL I'd 12345 3.14 --- ... ~~",
    "   \n \t  x",
]


@pytest.fixture(scope="module")
def both() -> tuple[Any, Any]:
    import demo_tokenizer

    plain = tiktoken.Encoding(
        "qwen", pat_str=demo_tokenizer.PATTERN, mergeable_ranks=demo_tokenizer.read_ranks(), special_tokens={}
    )
    return demo_tokenizer.load(CACHE), plain


@pytest.mark.parametrize("text", SAMPLES)
def test_it_makes_the_ids_that_tiktoken_makes(both: tuple[Any, Any], text: str) -> None:
    tokenizer, plain = both
    ids = tokenizer(text)["input_ids"]
    assert ids == plain.encode(unicodedata.normalize("NFC", text))
    assert tokenizer.decode(ids) == unicodedata.normalize("NFC", text)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60))
def test_it_makes_the_ids_that_tiktoken_makes_of_any_text(both: tuple[Any, Any], text: str) -> None:
    tokenizer, plain = both
    assume(not any(added in text for added in tokenizer.get_added_vocab()))  # tiktoken was given the ranks alone
    assert tokenizer(text)["input_ids"] == plain.encode(unicodedata.normalize("NFC", text))


def test_every_token_has_its_bytes(both: tuple[Any, Any]) -> None:
    import demo_tokenizer

    tokenizer, plain = both
    spelling = demo_tokenizer.byte_spelling()
    assert len(set(spelling.values())) == 256
    for token_id in range(0, plain.n_vocab, 97):
        assert tokenizer.convert_ids_to_tokens(token_id) == "".join(
            spelling[byte] for byte in plain.decode_single_token_bytes(token_id)
        )


def test_specials_have_qwens_ids_and_stay_whole(both: tuple[Any, Any]) -> None:
    tokenizer, _ = both
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id, len(tokenizer)) == (151643, 151645, 151665)
    assert tokenizer("<|im_start|>user\nhi<|im_end|>")["input_ids"] == [151644, 872, 198, 6023, 151645]
    assert tokenizer("<tool_call>")["input_ids"] == [151657]
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "hi"}], tokenize=False, add_generation_prompt=True
    )
    assert prompt == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
