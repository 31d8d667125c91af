"""The examples are scripts: their folder is put on the path, as Python does when it runs one of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
CACHE = EXAMPLES.parent / ".cache" / "demo"
"""The demo's own cache, so that the tests find what `make demo` has made, and the other way round."""


@pytest.fixture(autouse=True, scope="session")
def _examples_on_the_path() -> Iterator[None]:
    sys.path.insert(0, str(EXAMPLES))
    yield
    sys.path.remove(str(EXAMPLES))
