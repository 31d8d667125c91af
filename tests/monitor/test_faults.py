from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from rlvitals_monitor.__main__ import control, db, notify, token
from rlvitals_monitor.app import create_app
from rlvitals_monitor.faults import WRONG_SETTING, plainly
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.engine import Store


@plainly
def serve(_argv: list[str]) -> int:
    create_app(Settings())
    return 0


@pytest.fixture(autouse=True)
def own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLVITALS_HOME", str(tmp_path / "home"))
    (tmp_path / "channels.yaml").write_text("channels:\n  - name: x\n    type: slack\n")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("PORT", "abc", "RLVITALS_PORT: expected a valid integer"),
        ("POLICY", "foo", "RLVITALS_POLICY: expected 'observe', 'approve' or 'auto', got 'foo'"),
        ("COOL_DOWN_STEPS", "-1", "RLVITALS_COOL_DOWN_STEPS: expected greater than or equal to 0, got '-1'"),
        ("DATABASE_URL", "foo://x", "RLVITALS_DATABASE_URL: expected sqlite:///"),
        ("CHANNELS", "{tmp}/none.yaml", "none.yaml: expected a readable YAML file of channels"),
        ("SLACK_WEBHOOK_URL", "hooks", "url of slack: expected https://host/"),
        ("RULES", "{tmp}/none.yaml", "none.yaml:1: expected a readable UTF-8 file"),
        ("DATA", "{tmp}/channels.yaml", "channels.yaml"),
    ],
)
def test_a_wrong_setting_is_told_in_one_line_with_what_was_expected(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    name: str,
    value: str,
    told: str,
) -> None:
    monkeypatch.setenv(f"RLVITALS_{name}", value.format(tmp=tmp_path))
    assert serve([]) == WRONG_SETTING
    said = capsys.readouterr().err
    assert said.startswith("rlvitals: ")
    assert told in said
    assert said.count("\n") == 1


def test_settings_that_do_not_fit_together_are_told_without_what_they_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLVITALS_DATABASE_URL", "postgresql+psycopg://u:hunter2@host/db")
    monkeypatch.setenv("RLVITALS_TLS_CERT", "cert.pem")
    assert serve([]) == WRONG_SETTING
    said = capsys.readouterr().err
    assert (
        said == "rlvitals: expected RLVITALS_TLS_CERT and RLVITALS_TLS_KEY (--tls-cert, --tls-key), or neither\n"
    )


def test_every_command_tells_a_wrong_setting_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLVITALS_POLICY", "foo")
    for command, arguments in ((db, ["check"]), (token, ["list"]), (notify, ["list"])):
        assert command(arguments) == WRONG_SETTING
        assert "RLVITALS_POLICY: expected" in capsys.readouterr().err


def test_a_database_that_does_not_answer_is_told_without_its_password(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLVITALS_DATABASE_URL", "postgresql+psycopg://me:pa55@127.0.0.1:1/x")
    assert token(["list"]) == WRONG_SETTING
    said = capsys.readouterr().err
    assert "the database does not answer" in said
    assert "pa55" not in said


def test_an_error_of_our_own_is_not_mistaken_for_a_wrong_setting() -> None:
    @plainly
    def broken() -> int:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        broken()


def test_a_database_of_a_newer_version_is_told_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("RLVITALS_DATA", str(tmp_path))
    assert db(["migrate"]) == 0
    store = Store(Settings().store_url)
    with store.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    store.close()
    for command, arguments in ((db, ["check"]), (token, ["list"]), (control, ["policy", "list"])):
        assert command(arguments) == WRONG_SETTING
        assert "Upgrade RL Vitals, or name another database" in capsys.readouterr().err
