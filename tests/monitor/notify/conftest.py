"""A provider that answers as told, and channels that lead to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx2
import pytest

from rlvitals_monitor.notify.channel import Channel, ChannelKind
from rlvitals_monitor.notify.post import build_client
from tests.monitor.notify.provider import Certificate, Provider, Said

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
