"""Every simulator: a channel that is here is tried with each behaviour and with hostile text."""

from __future__ import annotations

from collections.abc import Sequence

from tests.monitor.notify.providers import Simulator
from tests.monitor.notify.providers.email import Email
from tests.monitor.notify.providers.slack import Slack
from tests.monitor.notify.providers.teams import Teams
from tests.monitor.notify.providers.webhook import Webhook

SIMULATORS: Sequence[Simulator] = [
    Webhook(),
    Slack(),
    Teams(),
    Email(),
    Email("smtps"),
]
