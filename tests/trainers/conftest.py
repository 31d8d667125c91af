"""Real trainers, minutes each: `make test-trainers`, never part of `make test`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.trainers.environments import python_of


@pytest.fixture(scope="session")
def environment() -> Callable[[str], Path]:
    """Name of an environment → its interpreter, installed at first use."""
    return python_of
