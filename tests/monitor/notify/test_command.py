"""``rlvitals notify`` against a provider."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlvitals_monitor.app import create_app
from rlvitals_monitor.notify.command import notify
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store import channels as table
from rlvitals_monitor.store.engine import Store
from tests.monitor.batches import NOW
from tests.monitor.notify.conftest import Opened
from tests.monitor.notify.provider import Said


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, provide: Opened) -> None:
    provider = provide(Said(), Said(status=403, body=b"action_prohibited"))
    monkeypatch.setenv("RLVITALS_SLACK_WEBHOOK_URL", provider.url)
    monkeypatch.setenv("RLVITALS_ALLOW_PRIVATE", "1")


@pytest.mark.usefixtures("told")
def test_a_test_message_says_what_the_provider_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert notify(["test", "slack"]) == 0
    assert capsys.readouterr().out == "slack: delivered: HTTP 200: ok\n"
    assert notify(["test", "slack"]) == 1
    assert capsys.readouterr().out == "slack: NOT delivered: HTTP 403: action_prohibited\n"


@pytest.mark.usefixtures("told")
def test_the_list_shows_hosts_and_no_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    assert notify(["list"]) == 0
    assert capsys.readouterr().out == "slack  slack  127.0.0.1  warning  unsigned\n"


@pytest.mark.usefixtures("told")
def test_a_channel_that_is_not_there_is_told_with_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert notify(["test", "team"]) == 2
    assert capsys.readouterr().err == "there is no channel 'team'; there are: slack\n"


def test_channels_that_the_api_made_are_listed_too(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    with store.begin() as conn:
        table.create(conn, "mine", {"kind": "webhook", "url": "https://mine.example/T0KEN"}, "ann", NOW)
    url = store.engine.url.render_as_string(hide_password=False)
    assert notify(["list"], store_url=url) == 0
    assert capsys.readouterr().out == "mine  webhook  mine.example  warning  unsigned\n"


def test_where_no_service_was_started_the_file_is_all_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        assert notify(["list"], store_url=f"sqlite:///{folder / 'x.db'}") == 0
        assert "no channels" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [], "a look makes no file"


def test_a_database_that_does_not_answer_is_told_and_the_file_is_listed(
    told: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert notify(["list"], store_url="postgresql+psycopg://u:p@127.0.0.1:1/x") == 0
    said = capsys.readouterr()
    assert said.out == "slack  slack  127.0.0.1  warning  unsigned\n"
    assert "the database does not answer" in said.err


def test_without_channels_it_says_how_to_make_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert notify(["list"]) == 0
    assert "RLVITALS_SLACK_WEBHOOK_URL" in capsys.readouterr().err


def test_settings_that_are_wrong_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLVITALS_WEBHOOK_URL", "http://plain.example/h0k")
    assert notify(["list"]) == 2
    told = capsys.readouterr().err
    assert "expected https" in told
    assert "h0k" not in told


def test_a_channel_that_is_left_out_is_told_and_the_others_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("RLVITALS_CHANNELS", str(a_file_with_one_bad_channel(tmp_path)))
    assert notify(["list"]) == 2
    told = capsys.readouterr()
    assert told.out == "good  webhook  a.example  warning  unsigned\n"
    assert told.err.startswith("not in force as written: ")
    assert "channels.yaml:3: expected one of name, kind, url" in told.err


@pytest.mark.parametrize("before", ["db(['migrate']); ", ""], ids=["with a store", "without one"])
def test_an_escalation_that_leads_nowhere_is_told_once_with_its_line_and_its_channel_is_listed(
    tmp_path: Path, before: str
) -> None:
    path = tmp_path / "channels.yaml"
    team = "{name: team, kind: webhook, url: https://a.example/h, escalate: {to: boss, after: 30m}}"
    path.write_text(f"channels:\n  - {team}\n", encoding="utf-8")
    script = "from rlvitals_monitor.__main__ import db, notify; " + before + "exit(notify(['list']))"
    env = {**os.environ, "RLVITALS_CHANNELS": str(path), "RLVITALS_HOME": str(tmp_path)}
    told = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert told.stdout.endswith("team  webhook  a.example  warning  unsigned\n")
    wrong = f"{path}:2: escalate of team: expected the name of another channel, got boss"
    assert told.stderr == f"not in force as written: {wrong}\n"


def test_the_service_starts_with_the_channels_that_are_right_and_logs_the_one_that_is_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setenv("RLVITALS_CHANNELS", str(a_file_with_one_bad_channel(tmp_path)))
    app = create_app(Settings(data=tmp_path))
    assert [channel.name for channel in app.state.channel_book.channels] == ["good"]
    assert "a channel is not in force as it is written: " in caplog.text
    assert "channels.yaml:3: expected one of name, kind, url" in caplog.text
    app.state.store.close()


def a_file_with_one_bad_channel(folder: Path) -> Path:
    path = folder / "channels.yaml"
    good = "{name: good, kind: webhook, url: https://a.example/h}"
    bad = "{name: bad, kind: slack, urll: https://b.example}"
    path.write_text(f"channels:\n  - {good}\n  - {bad}\n", encoding="utf-8")
    return path
