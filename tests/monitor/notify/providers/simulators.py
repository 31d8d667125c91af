"""Every simulator: a channel that is here is tried with each behaviour and with hostile text."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from tests.monitor.notify.providers import Simulator
from tests.monitor.notify.providers.apprise import Apprise
from tests.monitor.notify.providers.dingtalk import DingTalk
from tests.monitor.notify.providers.discord import Discord
from tests.monitor.notify.providers.email import Email
from tests.monitor.notify.providers.feishu import Feishu, Lark
from tests.monitor.notify.providers.slack import Slack
from tests.monitor.notify.providers.teams import Teams
from tests.monitor.notify.providers.telegram import Telegram
from tests.monitor.notify.providers.webhook import AlertmanagerRelay, Webhook
from tests.monitor.notify.providers.wecom import WeCom

SIMULATORS: Sequence[Simulator] = [
    Webhook(),
    AlertmanagerRelay(),
    Slack(),
    Discord(),
    Feishu(),
    Lark(),
    DingTalk(),
    WeCom(),
    Telegram(),
    Teams(),
    Email(),
    Email("smtps"),
    # An extra: where it is not installed, its channel is not tried.
    *([Apprise()] if find_spec("apprise") else []),
]
