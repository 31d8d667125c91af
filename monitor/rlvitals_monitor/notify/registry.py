"""Every kind of channel that there is: one line each."""

from __future__ import annotations

from collections.abc import Mapping

from rlvitals_monitor.notify import (
    apprise_url,
    dingtalk,
    discord,
    email,
    feishu,
    slack,
    teams,
    telegram,
    webhook,
    wecom,
)
from rlvitals_monitor.notify.channel import SLACK_GAP_S, ChannelKind
from rlvitals_monitor.notify.kind import Kind

KINDS: Mapping[ChannelKind, Kind] = {
    ChannelKind.WEBHOOK: Kind(
        build=webhook.build, judge=webhook.judge, check=webhook.check, options=webhook.OPTIONS
    ),
    ChannelKind.SLACK: Kind(build=slack.build, judge=slack.judge, gap_s=SLACK_GAP_S),
    ChannelKind.DISCORD: Kind(
        build=discord.build, judge=discord.judge, check=discord.check, gap_s=discord.GAP_S, pictures=True
    ),
    ChannelKind.FEISHU: Kind(build=feishu.build, judge=feishu.judge, check=feishu.check, gap_s=feishu.GAP_S),
    ChannelKind.DINGTALK: Kind(
        build=dingtalk.build, judge=dingtalk.judge, check=dingtalk.check, gap_s=dingtalk.GAP_S
    ),
    ChannelKind.WECOM: Kind(build=wecom.build, judge=wecom.judge, check=wecom.check, gap_s=wecom.GAP_S),
    ChannelKind.TELEGRAM: Kind(
        build=telegram.build,
        judge=telegram.judge,
        check=telegram.check,
        options=("chat_id", "message_thread_id"),
        gap_s=telegram.GAP_S,
        pictures=True,
    ),
    ChannelKind.TEAMS: Kind(build=teams.build, judge=teams.judge, check=teams.check, gap_s=teams.GAP_S),
    ChannelKind.EMAIL: Kind(
        send=email.send, check=email.check, options=email.OPTIONS, gap_s=email.GAP_S, pictures=True
    ),
    ChannelKind.APPRISE: Kind(send=apprise_url.send, check=apprise_url.check, gap_s=apprise_url.GAP_S),
}
