"""A provider that answers as told, and channels that lead to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx2
import pytest

from rlvitals_monitor.notify.channel import Channel, ChannelKind
from rlvitals_monitor.notify.post import build_client
from tests.monitor.notify.provider import Certificate, Provider, Said, self_signed
from tests.monitor.notify.providers.table import PROVIDER_CELL, table

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

Opened = Callable[..., Provider]


@pytest.fixture
def provide() -> Iterator[Opened]:
    """Starts a provider with a script."""
    with ExitStack() as stack:

        def opened(*script: Said, certificate: Certificate | None = None) -> Provider:
            return stack.enter_context(Provider(*script, certificate=certificate).running())

        yield opened


@pytest.fixture
def client() -> Iterator[httpx2.Client]:
    with build_client() as opened:
        yield opened


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """A self-signed certificate for hooks.example."""
    if shutil.which("openssl") is None:
        pytest.skip("NO TLS TEST: openssl is not installed")
    return self_signed(tmp_path_factory.mktemp("certificate"), "hooks.example")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of `test_providers`, also where several processes ran it."""
    reports = [report for group in terminalreporter.stats.values() for report in group]
    kept = [dict(getattr(report, "user_properties", [])).get(PROVIDER_CELL) for report in reports]
    told = [cell for cell in kept if cell]
    if told:
        terminalreporter.section("what becomes of each provider's answers")
        for line in table(told):
            terminalreporter.write_line(line)


def channel_to(provider: Provider, **given: object) -> Channel:
    fields: dict[str, object] = {
        "name": "pager",
        "kind": ChannelKind.WEBHOOK,
        "url": provider.url,
        "secret": SECRET,
        "allow_private": True,
        "timeout_s": 5.0,
    }
    return Channel(**{**fields, **given})  # type: ignore[arg-type]
