"""Where a channel's secrets may be taken from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlvitals_monitor.notify.secret_source import BYTES_MAX, ENV_PREFIX, SecretSource
from rlvitals_monitor.rules.document import RuleFileError, read_document


def read(source: SecretSource, text: str) -> str:
    return source.read(read_document(text, "channels.yaml"))


def test_the_operators_file_may_name_any_variable_and_any_path(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from a file\n", encoding="utf-8")
    source = SecretSource(environ={"ANY": " from the environment\n"})
    assert read(source, "{env: ANY}") == "from the environment"
    assert read(source, f"{{file: {tmp_path / 'key'}}}") == "from a file"
    assert read(source, "as written") == "as written"


def test_the_api_may_name_only_what_was_laid_out_for_it(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "key").write_text("mine", encoding="utf-8")
    (tmp_path / "token.json").write_text("the owner's", encoding="utf-8")
    (folder / "link").symlink_to(tmp_path / "token.json")
    source = SecretSource(
        environ={f"{ENV_PREFIX}TEAM": "mine", "DATABASE_URL": "theirs"}, env_prefix=ENV_PREFIX, folder=folder
    )
    assert read(source, f"{{env: {ENV_PREFIX}TEAM}}") == "mine"
    assert read(source, f"{{file: {folder / 'key'}}}") == "mine"
    for away in (folder / ".." / "token.json", tmp_path / "token.json", folder / "link"):
        with pytest.raises(RuleFileError, match="expected a file in"):
            read(source, f"{{file: {away}}}")
    with pytest.raises(RuleFileError, match=f"begins with {ENV_PREFIX}, got 'DATABASE_URL'"):
        read(source, "{env: DATABASE_URL}")


@pytest.mark.parametrize("text", ["{env: A, file: b}", "{}", "{vault: a}", "[a]"])
def test_anything_else_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(RuleFileError, match=r"channels\.yaml:1: expected"):
        read(SecretSource(environ={"A": "x"}), text)


def test_a_file_that_cannot_be_read_is_told_without_its_content(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe hidden")
    for name in ("bytes", "absent"):
        with pytest.raises(RuleFileError) as found:
            read(SecretSource(), f"{{file: {tmp_path / name}}}")
        assert "expected a readable" in str(found.value)
        assert "hidden" not in str(found.value)


def test_a_pipe_a_device_and_a_huge_file_hold_up_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "huge").write_bytes(b"x" * (BYTES_MAX + 1))
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path / "huge", tmp_path):
        with pytest.raises(RuleFileError, match="expected a readable file"):
            read(SecretSource(), f"{{file: {path}}}")
