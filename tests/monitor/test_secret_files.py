from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_settings import SettingsError

from rlvitals_monitor.notify.settings import NotifySettings
from rlvitals_monitor.settings import Settings


def test_a_setting_may_come_from_a_file_without_its_line_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "url").write_text("postgresql://u:secret@db/x\n")
    (tmp_path / "hook").write_text("https://chat.example/secret\r\n")
    monkeypatch.setenv("RLVITALS_DATABASE_URL_FILE", str(tmp_path / "url"))
    monkeypatch.setenv("RLVITALS_WEBHOOK_URL_FILE", str(tmp_path / "hook"))
    assert Settings().database_url == "postgresql://u:secret@db/x"
    assert NotifySettings().webhook_url.get_secret_value() == "https://chat.example/secret"
    assert "chat.example" not in repr(NotifySettings())


def test_what_the_command_line_says_comes_before_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "port").write_text("9000")
    monkeypatch.setenv("RLVITALS_PORT_FILE", str(tmp_path / "port"))
    assert (Settings().port, Settings(port=9001).port) == (9000, 9001)


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"x" * 70_000])
def test_a_file_that_cannot_be_read_is_told_by_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "url").write_bytes(content)
    monkeypatch.setenv("RLVITALS_DATABASE_URL_FILE", str(tmp_path / "url"))
    with pytest.raises(SettingsError, match="RLVITALS_DATABASE_URL_FILE: "):
        Settings()


def test_a_setting_that_is_named_twice_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLVITALS_DATABASE_URL", "sqlite://")
    monkeypatch.setenv("RLVITALS_DATABASE_URL_FILE", str(tmp_path / "url"))
    with pytest.raises(SettingsError, match="got both"):
        Settings()
