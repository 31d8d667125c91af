"""Real trainers, minutes each: `make test-trainers`, never part of `make test`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.server import Server
from tests.trainers.environments import python_of
from tests.trainers.overhead import Overhead, of_run

_OVERHEADS = pytest.StashKey[dict[str, Overhead]]()


@pytest.fixture(scope="session")
def environment() -> Callable[[str], Path]:
    """Name of an environment → its interpreter, installed at first use."""
    return python_of


@pytest.fixture(scope="session")
def overhead(request: pytest.FixtureRequest) -> Callable[[str, Server, str], Overhead]:
    """Measures a run's overhead under a name, and has it printed at the end."""

    def overhead(name: str, server: Server, run: str) -> Overhead:
        found = of_run(server, run)
        request.config.stash.setdefault(_OVERHEADS, {})[name] = found
        return found

    return overhead


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    found = config.stash.get(_OVERHEADS, {})
    if found:
        terminalreporter.section("our own seconds in the training's thread")
    for name, told in found.items():
        terminalreporter.write_line(f"{name}: {told}")
