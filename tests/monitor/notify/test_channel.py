"""Channels as data: read strictly, with file and line, and never showing a secret."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from rlvitals.contract.alert import AlertState, Severity
from rlvitals_monitor.notify.channel import Channel, ChannelError, ChannelKind, Channels
from rlvitals_monitor.notify.channel_file import load_channels
from rlvitals_monitor.notify.dispatch import wants
from rlvitals_monitor.notify.settings import NotifySettings
from tests.monitor.planted import a_transition, an_alert, resolved

URL = "https://hooks.slack.example/services/T0/B0/s3cr3tpath"


def quiet(words: str) -> str:
    return f"channels:\n  - name: a\n    kind: slack\n    url: https://a.example\n    quiet: {{{words}}}\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "channels.yaml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def test_channels_come_from_a_file_with_secrets_from_the_environment_and_from_files(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush hush\n", encoding="utf-8")
    path = written(
        tmp_path,
        f"""
        channels:
          - name: team
            kind: slack
            url: {{env: TEAM_URL}}
            severity: critical
            send_resolved: false
          - name: pager
            kind: webhook
            url: https://pager.example/h
            secret: {{file: {tmp_path / "secret"}}}
            gap_s: 3
        """,
    )
    team, pager = load_channels(path, environ={"TEAM_URL": f" {URL}\n"}).items
    assert (team.kind, team.url, team.severity, team.send_resolved) == (
        ChannelKind.SLACK,
        URL,
        Severity.CRITICAL,
        False,
    )
    assert (team.gap_s, pager.gap_s) == (1.0, 3.0)
    assert (pager.secret, pager.severity, pager.send_resolved) == ("hush hush", Severity.WARNING, True)


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("channels: [\n", 2, "expected YAML"),
        (
            "channels:\n  - {name: a, kind: webhook, url: https://a.example, body: xml}\n",
            2,
            "body: expected one of",
        ),
        (
            "channels:\n  - {name: a, kind: slack, url: https://a.example, body: xml}\n",
            2,
            "expected one of name, kind",
        ),
        ("channels:\n  - {name: a, kind: slack, url: https://a.example, match: [project]}\n", 2, "FIELD=PATTERN"),
        ("channels:\n  - {name: a, kind: slack, url: https://a.example, match: [colour=red]}\n", 2, "FIELD of"),
        ("channels:\n  - {name: a, kind: slack, url: https://a.example, language: xx}\n", 2, "one of en, zh"),
        (quiet("from: '22:00', to: '7:00', zone: UTC"), 5, "expected a time of day"),
        (quiet("from: '24:00', to: '07:00', zone: UTC"), 5, "expected a time of day"),
        (quiet("from: '22:00', to: '07:00', zone: Mars/Base"), 5, "expected a time zone"),
        (quiet("from: '22:00', to: '07:00', zone: ../../etc/passwd"), 5, "expected a time zone"),
        (quiet("from: '22:00', to: '07:00'"), 5, "expected 'zone' to be present"),
        (quiet("from: '22:00', to: '22:00', zone: UTC"), 5, "expected from and to to differ"),
        (quiet("from: '22:00', to: '07:00', zone: UTC, critical: maybe"), 5, "one of through, held"),
        ("channels:\n  - kind: slack\n    url: https://a.example\n", 2, "expected 'name' to be present"),
        (
            "channels:\n  - name: a\n    kind: pigeon\n    url: https://a.example\n",
            3,
            "expected one of webhook, slack, ",
        ),
        (
            "channels:\n  - name: a\n    kind: slack\n    urll: https://a.example\n",
            4,
            "expected one of name, kind, url",
        ),
        ("channels:\n  - name: a\n    kind: slack\n    url: {env: NOWHERE}\n", 4, "variable NOWHERE to be set"),
        ("channels:\n  - name: a\n    kind: slack\n    url: {file: /nowhere}\n", 4, "expected a readable file"),
        ("channels:\n  - name: a\n    kind: slack\n    url: {}\n", 4, "expected one of env, file"),
        ("channels:\n  - name: a b\n    kind: slack\n    url: https://a.example\n", 2, "name: expected 1 to 48"),
        ("channels:\n  - name: a\n    kind: slack\n    url: http://a.example\n", 2, "expected https"),
        ("channels:\n  - name: a\n    kind: slack\n    url: ftp://a.example\n", 2, "expected https://host/"),
        (
            "channels:\n  - name: a\n    kind: webhook\n    url: https://a.example\n    secret: whsec_!\n",
            2,
            "base64",
        ),
        (
            "channels:\n  - name: a\n    kind: slack\n    url: https://a.example\n    severity: bad\n",
            5,
            "expected one of info",
        ),
        ("canals: []\n", 1, "expected one of channels"),
    ],
)
def test_a_channel_that_is_wrong_is_left_out_with_its_line_and_what_was_expected(
    tmp_path: Path, text: str, line: int, expected: str
) -> None:
    loaded = load_channels(written(tmp_path, text), slack_webhook_url=URL, environ={})
    assert [channel.name for channel in loaded] == ["slack"]
    (problem,) = loaded.problems
    assert f"channels.yaml:{line}: " in problem
    assert expected in problem


def test_the_other_channels_of_a_file_work(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        channels:
          - {name: a, kind: webhook, url: https://a.example/h}
          - {name: b, kind: webhook, url: https://b.example/h, colour: red}
          - {name: a, kind: webhook, url: https://c.example/h}
          - {name: d, kind: slack, url: https://d.example/h}
          - just a text
        """,
    )
    loaded = load_channels(path, environ={})
    assert [(channel.name, channel.host) for channel in loaded] == [("a", "a.example"), ("d", "d.example")]
    assert [problem.split(": ")[0].rsplit(":", 1)[1] for problem in loaded.problems] == ["4", "5", "7"]
    assert "expected one of this name" in loaded.problems[1]


@pytest.mark.parametrize(
    ("kind", "url", "owner"),
    [
        ("webhook", "https://hooks.slack.com/services/T0/B0/s3cr3t", "slack"),
        ("slack", "https://discord.com/api/webhooks/1/s3cr3t", "discord"),
        ("slack", "https://oapi.dingtalk.com/robot/send?access_token=s3cr3t", "dingtalk"),
    ],
)
def test_an_address_that_is_another_kinds_is_refused_and_not_shown(
    tmp_path: Path, kind: str, url: str, owner: str
) -> None:
    path = written(tmp_path, f"channels:\n  - {{name: a, kind: {kind}, url: '{url}'}}\n")
    loaded = load_channels(path, environ={})
    assert loaded.items == ()
    assert f"expected {owner} for " in loaded.problems[0]
    assert "s3cr3t" not in loaded.problems[0]


def test_a_file_that_is_absent_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChannelError, match=r"absent\.yaml: expected a readable YAML file"):
        load_channels(tmp_path / "absent.yaml")


def test_two_channels_of_one_name_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "channels:\n  - {name: slack, kind: webhook, url: https://a.example}\n")
    with pytest.raises(ChannelError, match="channel slack: expected one of this name, got 2"):
        load_channels(path, slack_webhook_url=URL)


def test_one_channel_needs_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_WEBHOOK_URL", "https://pager.example/h")
    monkeypatch.setenv("RLVITALS_WEBHOOK_SECRET", "hush hush")
    monkeypatch.setenv("RLVITALS_SLACK_WEBHOOK_URL", URL)
    loaded = NotifySettings().load("http://127.0.0.1:8642")
    assert [(c.name, c.kind.value) for c in loaded] == [("webhook", "webhook"), ("slack", "slack")]
    assert loaded.public_url == "http://127.0.0.1:8642"
    monkeypatch.setenv("RLVITALS_PUBLIC_URL", "https://vitals.example")
    assert NotifySettings().load("http://127.0.0.1:8642").public_url == "https://vitals.example"


def test_plain_http_and_the_local_network_must_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_WEBHOOK_URL", "http://relay.local/h")
    with pytest.raises(ChannelError, match="http only with allow_private"):
        NotifySettings().load("")
    monkeypatch.setenv("RLVITALS_ALLOW_PRIVATE", "true")
    assert [c.host for c in NotifySettings().load("")] == ["relay.local"]


def test_no_secret_is_shown_by_a_channel_nor_by_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_WEBHOOK_URL", "https://pager.example/h0k")
    monkeypatch.setenv("RLVITALS_WEBHOOK_SECRET", "hush hush")
    monkeypatch.setenv("RLVITALS_SLACK_WEBHOOK_URL", URL)
    settings = NotifySettings()
    shown = f"{settings!r} {settings.load('')!r} {settings.load('')}"
    for secret in ("s3cr3tpath", "hush", "h0k"):
        assert secret not in shown


@pytest.mark.parametrize(
    "echo",
    [
        f"no such hook: {URL}",
        "no such hook: /services/T0/B0/s3cr3tpath",
        "bad signature with hush hush",
    ],
)
def test_what_a_provider_repeats_of_our_secrets_is_hidden(echo: str) -> None:
    channel = Channel(name="a", kind=ChannelKind.SLACK, url=URL, secret="hush hush")
    assert "s3cr3tpath" not in channel.redact(echo)
    assert "hush" not in channel.redact(echo)


def test_a_channel_hears_firing_and_resolved_from_its_least_severity_on() -> None:
    team = Channel(name="a", kind=ChannelKind.SLACK, url=URL)
    quiet = Channel(name="b", kind=ChannelKind.SLACK, url=URL, send_resolved=False)
    firing, info = a_transition(), a_transition(an_alert(severity=Severity.INFO))
    pending = a_transition(before=AlertState.INACTIVE, after=AlertState.PENDING)
    assert [wants(team, t) for t in (firing, info, pending, resolved(firing))] == [True, False, False, True]
    assert [wants(quiet, t) for t in (firing, resolved(firing))] == [True, False]


def test_a_secret_that_is_no_base64_is_refused_without_being_shown() -> None:
    with pytest.raises(ChannelError, match="expected base64 after whsec_") as refused:
        Channel(name="a", kind=ChannelKind.WEBHOOK, url=URL, secret="whsec_not base64!")
    assert "not base64!" not in str(refused.value)


def test_a_channel_is_found_by_name() -> None:
    channel = Channel(name="a", kind=ChannelKind.SLACK, url=URL)
    assert Channels(items=(channel,)).get("a") is channel
    assert Channels(items=(channel,)).get("b") is None
