"""Every kind of channel that there is: one line each."""

from __future__ import annotations

from collections.abc import Mapping

from rlvitals_monitor.notify import slack, webhook
from rlvitals_monitor.notify.channel import SLACK_GAP_S, ChannelKind
from rlvitals_monitor.notify.kind import Kind

KINDS: Mapping[ChannelKind, Kind] = {
    ChannelKind.WEBHOOK: Kind(build=webhook.build, judge=webhook.judge),
    ChannelKind.SLACK: Kind(build=slack.build, judge=slack.judge, gap_s=SLACK_GAP_S),
}
