"""Teams: which addresses can work, what fits a card, and what 202 is worth."""

from __future__ import annotations

import json

import pytest

from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify import teams
from rlvitals_monitor.notify.channel import ChannelError, ChannelKind
from rlvitals_monitor.notify.channel_file import make_channel
from rlvitals_monitor.notify.notification import tell_one
from rlvitals_monitor.notify.parcel import Reply, Verdict
from tests.monitor.planted import NOW, a_transition, an_alert

FLOW = "https://prod-01.westeurope.logic.azure.com:443/workflows/0a1b/triggers/manual/paths/invoke?api-version=1"
CHANNEL = make_channel("team", ChannelKind.TEAMS, f"{FLOW}&sig=s3cr3t")


@pytest.mark.parametrize(
    ("url", "secret", "expected"),
    [
        ("https://contoso.webhook.office.com/webhookb2/s3cr3t@x/IncomingWebhook/y", "", "connectors have ended"),
        ("https://outlook.office.com/webhook/s3cr3t", "", "connectors have ended"),
        ("https://prod-01.westeurope.logic.azure.com/s3cr3t", "", "/workflows/<id>/triggers/"),
        (FLOW, "", "with its &sig=<signature>"),
        (f"{FLOW}&sig=s3cr3t", "hush hush", "secret: expected none"),
    ],
)
def test_an_address_that_cannot_work_is_refused_and_not_shown(url: str, secret: str, expected: str) -> None:
    with pytest.raises(ChannelError) as refused:
        make_channel("team", ChannelKind.TEAMS, url, secret=secret)
    assert expected in str(refused.value)
    assert "s3cr3t" not in str(refused.value)


@pytest.mark.parametrize("filler", ["x", "好", "🙂", '"', "\\"])
def test_the_longest_texts_fit_into_28_kilobytes(filler: str) -> None:
    long = filler * 5000
    alert = an_alert(rule=long, metric=long, summary=long, advice=long)
    note = tell_one(id="m1", transition=a_transition(alert), run=RunInfo(id="r" * 128, name=long, project=long))
    body = teams.build(CHANNEL, note, NOW).body
    assert len(body) <= 28 * 1024
    assert json.loads(body)["type"] == "message"


def test_without_an_own_address_there_is_no_button() -> None:
    note = tell_one(id="m1", transition=a_transition(), run=RunInfo(id="r1"))
    card = json.loads(teams.build(CHANNEL, note, NOW).body)["attachments"][0]["content"]
    assert "actions" not in card


def test_202_is_told_as_queued_since_the_flow_may_still_fail() -> None:
    answer = teams.judge(Reply(status=202, headers={}, body=b""), NOW)
    assert answer.verdict is Verdict.DELIVERED
    assert answer.words == f"HTTP 202 ({teams.QUEUED})"
    assert teams.judge(Reply(status=200, headers={}, body=b"1"), NOW).words == "HTTP 200: 1"
