"""Every simulator: a channel that is here is tried with each behaviour and with hostile text."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from tests.monitor.notify.providers import Simulator
from tests.monitor.notify.providers.apprise import Apprise
from tests.monitor.notify.providers.email import Email
from tests.monitor.notify.providers.slack import Slack
from tests.monitor.notify.providers.teams import Teams
from tests.monitor.notify.providers.webhook import AlertmanagerRelay, Webhook

SIMULATORS: Sequence[Simulator] = [
    Webhook(),
    AlertmanagerRelay(),
    Slack(),
    Teams(),
    Email(),
    Email("smtps"),
    # An extra: where it is not installed, its channel is not tried.
    *([Apprise()] if find_spec("apprise") else []),
]
