from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rlvitals import settings
from rlvitals.settings import DEFAULT_URL, Mode, load, read_token_file


def home(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"RLVITALS_HOME": str(tmp_path / "home"), **more}


def token_file(tmp_path: Path, mode: int = 0o600, **content: str) -> Path:
    path = tmp_path / "home" / "token.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"url": "http://127.0.0.1:9000", "token": "from-file", **content}))
    path.chmod(mode)
    return path


def test_defaults(tmp_path: Path) -> None:
    chosen = load(env=home(tmp_path))
    assert (chosen.url, chosen.token, chosen.project, chosen.mode) == (DEFAULT_URL, "", "default", Mode.ONLINE)
    assert chosen.spool == tmp_path / "home" / "spool"


def test_arguments_go_before_variables_and_those_before_the_token_file(tmp_path: Path) -> None:
    token_file(tmp_path)
    assert load(env=home(tmp_path)).url == "http://127.0.0.1:9000"
    assert load(env=home(tmp_path)).token == "from-file"
    env = home(tmp_path, RLVITALS_URL="https://vitals.example/", RLVITALS_TOKEN="from-env", RLVITALS_PROJECT="p")
    chosen = load(env=env)
    assert (chosen.url, chosen.token, chosen.project) == ("https://vitals.example", "from-env", "p")
    chosen = load(env=env, url="http://10.0.0.1:1", token="argument", project="q", run="id")
    assert (chosen.url, chosen.token, chosen.project, chosen.run_id) == (
        "http://10.0.0.1:1",
        "argument",
        "q",
        "id",
    )


def test_the_files_token_goes_to_no_other_service(tmp_path: Path) -> None:
    token_file(tmp_path)
    assert load(env=home(tmp_path, RLVITALS_URL="http://elsewhere:8642")).token == ""
    assert load(env=home(tmp_path, RLVITALS_URL="http://127.0.0.1:9000/")).token == "from-file"


def test_a_token_file_that_others_may_read_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = token_file(tmp_path, mode=0o644)
    assert read_token_file(path) == ("", "")
    assert "0600" in caplog.text


def test_a_token_file_that_is_a_link_or_belongs_to_another_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = token_file(tmp_path)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    assert read_token_file(link) == ("", "")
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    assert read_token_file(path) == ("", "")


@pytest.mark.parametrize("content", ["", "[]", '{"url": 5}', "\udcff"])
def test_a_damaged_token_file_is_ignored(tmp_path: Path, content: str) -> None:
    path = token_file(tmp_path)
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert read_token_file(path) == ("", "")


@pytest.mark.parametrize("url", ["ftp://x", "127.0.0.1:8642", "http://", "http://host:port", "http://host:99999"])
def test_a_wrong_address_is_told_and_replaced(tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture) -> None:
    assert load(env=home(tmp_path), url=url).url == DEFAULT_URL
    assert "RLVITALS_URL" in caplog.text


@pytest.mark.parametrize(("key", "value"), [("RLVITALS_MODE", "onlin"), ("RLVITALS_TIMEOUT_S", "-1")])
def test_a_wrong_variable_is_named_and_the_default_used(
    tmp_path: Path, key: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    chosen = load(env=home(tmp_path, **{key: value}))
    assert (chosen.mode, chosen.timeout_s) == (Mode.ONLINE, 10.0)
    assert key in caplog.text
    assert value in caplog.text


def test_a_token_may_come_from_a_file_and_one_that_cannot_be_read_costs_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "token").write_text("rlv_from_a_file\n")
    named = home(tmp_path, RLVITALS_TOKEN_FILE=str(tmp_path / "token"))
    assert load(env=named).token == "rlv_from_a_file"
    assert load(env=named, token="rlv_told").token == "rlv_told"
    assert load(env=home(tmp_path, RLVITALS_TOKEN_FILE=str(tmp_path / "none"))).token == ""
    assert "RLVITALS_TOKEN_FILE cannot be read" in caplog.text


@pytest.mark.parametrize("value", ["nan", "inf", "many"])
def test_a_number_must_be_one(tmp_path: Path, value: str) -> None:
    assert load(env=home(tmp_path, RLVITALS_SPOOL_BYTES=value)).spool_bytes == 4096 * 2**20


def test_numbers_and_lists_are_read(tmp_path: Path) -> None:
    chosen = load(env=home(tmp_path, RLVITALS_KEPT_BYTES="1e6", RLVITALS_TAGS="a, b,,", RLVITALS_MODE="offline"))
    assert (chosen.kept_bytes, chosen.tags, chosen.mode) == (1_000_000, ("a", "b"), Mode.OFFLINE)


@pytest.mark.parametrize(("told", "used"), [("my run/7", "my-run-7"), ("..", "-"), (".", "-"), ("v1..2", "v1..2")])
def test_a_run_id_is_made_fit(tmp_path: Path, told: str, used: str) -> None:
    assert load(env=home(tmp_path), run=told).run_id == used


def test_the_token_is_not_in_the_settings_printed(tmp_path: Path) -> None:
    assert "s3cret" not in repr(load(env=home(tmp_path), token="s3cret"))


def test_a_spool_on_the_network_is_moved_unless_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        settings, "mounts", lambda: f"server:/home {tmp_path} nfs4 rw 0 0\n/dev/vda / ext4 rw 0 0\n"
    )
    assert load(env=home(tmp_path)).spool == settings.local_spool()
    assert load(env=home(tmp_path, RLVITALS_DIR=str(tmp_path / "mine"))).spool == tmp_path / "mine"
    assert "network file system (nfs4)" in caplog.text


@pytest.mark.parametrize(
    ("told", "texts"),
    [("", True), ("1", True), ("TRUE", True), ("on", True), ("0", False), ("off", False), ("nope", False)],
)
def test_texts_are_sent_unless_somebody_switched_them_off_or_tried_to(told: str, texts: bool) -> None:
    assert settings.load(env={"RLVITALS_TEXTS": told}).texts is texts


@pytest.mark.parametrize("end", ["\n", " \r\n", ""])
def test_a_token_from_a_mounted_file_has_a_line_end_that_is_not_its_own(tmp_path: Path, end: str) -> None:
    assert load(env=home(tmp_path, RLVITALS_TOKEN=f"rlv_abc{end}")).token == "rlv_abc"


@pytest.mark.parametrize("told", ["two\nlines", "é日", "with space", "\x00"])
def test_what_can_be_no_token_is_not_used_and_its_words_are_not_told(
    tmp_path: Path, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert load(env=home(tmp_path, RLVITALS_TOKEN=told)).token == ""
    assert "RLVITALS_TOKEN" in caplog.text
    assert told not in caplog.text


def test_a_folder_of_somebody_who_is_not_there_is_told_and_the_default_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    env = home(tmp_path, RLVITALS_DIR="~nobody-of-this-name/spool")
    assert load(env=env).spool == tmp_path / "home" / "spool"
    assert "RLVITALS_DIR" in caplog.text
