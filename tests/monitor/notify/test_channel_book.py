"""Channels that change under a running service: of the file, and of the API."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rlvitals_monitor.notify.channel import ChannelError
from rlvitals_monitor.notify.channel_body import BodyReader, carry_over, hide, leads_away
from rlvitals_monitor.notify.channel_book import ChannelBook
from rlvitals_monitor.notify.dispatch import route
from rlvitals_monitor.notify.dispatcher import Dispatcher
from rlvitals_monitor.notify.secret_source import SecretSource
from rlvitals_monitor.notify.settings import NotifySettings
from rlvitals_monitor.store import channels as table
from rlvitals_monitor.store.engine import Store
from tests.monitor.notify.conftest import SECRET, Opened
from tests.monitor.planted import NOW, a_transition, later, plant

Write = Callable[[str], None]
TEAM = "  - {name: team, kind: slack, url: https://hooks.slack.com/services/T/B/0123456789}\n"
PAGER = "  - {name: pager, kind: webhook, url: https://pager.example/h}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "channels.yaml"


@pytest.fixture
def write(file: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.setenv("RLVITALS_CHANNELS", str(file))

    def put(entries: str) -> None:
        file.write_text(f"channels:\n{entries}", encoding="utf-8")

    return put


def opened() -> ChannelBook:
    return ChannelBook.of(NotifySettings(), "http://127.0.0.1:8642", NOW)


def names(book: ChannelBook) -> list[str]:
    return [channel.name for channel in book.channels]


def add(store: Store, name: str = "mine", **body: object) -> None:
    with store.begin() as conn:
        assert table.create(conn, name, {"kind": "webhook", "url": "https://mine.example/h", **body}, "ann", NOW)


def test_a_changed_file_is_in_force_at_the_next_look(store: Store, write: Write) -> None:
    write(TEAM)
    book = opened()
    write(TEAM + PAGER)
    assert [c.name for c in book.refresh(store, later(5))] == ["team", "pager"]
    write(PAGER)
    book.refresh(store, later(10))
    assert names(book) == ["pager"]
    assert (book.view.channels, book.view.loaded_at, book.view.problems) == (1, later(10), ())


def test_it_looks_once_a_second_unless_asked_to_look_at_once(store: Store, write: Write) -> None:
    write(TEAM)
    book = opened()
    book.refresh(store, NOW)
    write(PAGER)
    assert [c.name for c in book.refresh(store, later(0.5))] == ["team"]
    assert [c.name for c in book.refresh(store, later(0.6), at_once=True)] == ["pager"]


def test_one_that_turns_bad_goes_on_as_it_was_and_the_rest_is_as_written(store: Store, write: Write) -> None:
    write(TEAM + PAGER)
    book = opened()
    write(TEAM.replace("kind: slack", "kind: slak") + PAGER.replace("/h", "/new"))
    book.refresh(store, later(5))
    assert sorted(names(book)) == ["pager", "team"]
    pager = book.channels.get("pager")
    assert pager is not None
    assert pager.url.endswith("/new")
    (problem,) = book.view.problems
    assert ":2: expected one of " in problem
    assert book.view.failed_at == later(5)
    write(PAGER)
    book.refresh(store, later(10))
    assert (names(book), book.view.problems, book.view.failed_at) == (["pager"], (), None)


@pytest.mark.parametrize(
    "text", ["channels: [", "", "channels:\n  - {nmae: team, kind: slack, url: https://hooks.slack.com/a}\n"]
)
def test_a_file_that_is_half_written_silences_nobody(store: Store, file: Path, write: Write, text: str) -> None:
    write(TEAM + PAGER)
    book = opened()
    file.write_text(text, encoding="utf-8")
    book.refresh(store, later(5))
    assert sorted(names(book)) == ["pager", "team"]
    assert str(file) in book.view.problems[0]


def test_a_file_that_goes_away_is_a_problem_and_not_the_end_of_its_channels(
    store: Store, file: Path, write: Write
) -> None:
    write(TEAM)
    book = opened()
    file.unlink()
    book.refresh(store, later(5))
    assert names(book) == ["team"]
    assert "expected a readable YAML file" in book.view.problems[0]


def test_what_the_api_wrote_stands_beside_the_file_and_the_files_name_goes_first(
    store: Store, write: Write
) -> None:
    write(TEAM)
    add(store)
    add(store, "team")
    book = opened()
    book.refresh(store, NOW)
    assert names(book) == ["team", "mine"]
    assert [book.is_made(name) for name in names(book)] == [False, True]
    assert book.view.problems == ("channel team: expected another name, the file has one of this name",)


def test_a_broken_row_leaves_the_others(store: Store, write: Write) -> None:
    write(TEAM)
    add(store, "broken", kind="pigeon")
    add(store, "mine")
    book = opened()
    book.refresh(store, NOW)
    assert names(book) == ["team", "mine"]
    (problem,) = book.view.problems
    assert problem.startswith("channel broken: expected one of ")


def test_a_problem_is_logged_once_and_not_at_each_look(
    store: Store, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    write(TEAM.replace("slack,", "slak,"))
    caplog.set_level(logging.ERROR)
    book = opened()
    for seconds in range(5):
        book.refresh(store, later(5.0 * seconds))
    assert caplog.text.count("not in force as it is written") == 1


def test_a_secret_that_is_changed_in_its_file_is_taken_up(store: Store, write: Write, tmp_path: Path) -> None:
    (tmp_path / "url").write_text("https://old.example/h", encoding="utf-8")
    write(f"  - {{name: pager, kind: webhook, url: {{file: {tmp_path / 'url'}}}}}\n")
    book = opened()
    (tmp_path / "url").write_text("https://new.example/h", encoding="utf-8")
    assert [c.host for c in book.refresh(store, later(5))] == ["new.example"]


def test_a_new_channel_hears_and_a_deleted_one_does_not_without_a_restart(
    store: Store, write: Write, provide: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLVITALS_ALLOW_PRIVATE", "true")
    write(TEAM)
    first, second = provide(), provide()
    book = opened()
    dispatcher = Dispatcher(store, book, look_s=0.02)
    dispatcher.start()
    try:
        plant(store, a_transition())
        add(store, url=first.url)
        book.refresh(store, later(5))
        with store.begin() as conn:
            route(conn, a_transition(), book.channels, NOW)
        first.wait_for(1)
        with store.begin() as conn:
            table.remove(conn, "mine")
        add(store, "other", url=second.url)
        book.refresh(store, later(10))
        with store.begin() as conn:
            route(conn, a_transition(), book.channels, NOW)
        second.wait_for(1)
        assert len(first.wait_for(1)) == 1
    finally:
        dispatcher.stop()


READER = BodyReader(source=SecretSource(environ={"RLVITALS_CHANNEL_KEY": SECRET}, folder=Path("/nowhere")))
WEBHOOK = {"kind": "webhook", "url": "https://mine.example/h"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({**WEBHOOK, "allow_private": True}, "allow_private: expected RLVITALS_ALLOW_PRIVATE"),
        ({"kind": "apprise", "url": "json://mine.example"}, "apprise"),
        ({**WEBHOOK, "url": {"file": "/etc/passwd"}}, "expected a file in /nowhere"),
        ({**WEBHOOK, "urll": "x"}, "did you mean 'url'?"),
        ({**WEBHOOK, "url": "http://mine.example/s3cret"}, "expected https"),
        ({**WEBHOOK, "gap_s": float("nan")}, "expected a whole number"),
        ({**WEBHOOK, "gap_s": float("inf")}, "expected a whole number"),
        ({**WEBHOOK, "severity": "\x00\ud800"}, "expected YAML"),
        ({**WEBHOOK, "match": ["x" * 30_000]}, "expected at most 20000 characters"),
        ({**WEBHOOK, "url": None}, "expected 'url' to be present"),
        ({}, "expected 'kind' to be present"),
    ],
)
def test_what_the_api_may_not_write_is_refused_in_words_without_a_secret(
    body: Mapping[str, Any], expected: str
) -> None:
    with pytest.raises(ChannelError) as found:
        READER.read("mine", body)
    assert expected in str(found.value)
    assert "s3cret" not in str(found.value)


@pytest.mark.parametrize("name", ["", "a b", "status", "../x", "x" * 49])
def test_a_name_is_short_and_plain(name: str) -> None:
    with pytest.raises(ChannelError, match=r"^name: expected"):
        READER.read(name, WEBHOOK)


def test_secrets_are_hidden_and_stay_where_they_are_not_given_anew() -> None:
    before = {**WEBHOOK, "secret": SECRET}
    shown = hide({**before, "language": "zh"})
    assert shown == {"kind": "webhook", "url": "***", "secret": "***", "language": "zh"}
    assert carry_over({"kind": "webhook", "severity": "info"}, before) == {**before, "severity": "info"}
    assert carry_over(shown, before) == {**before, "language": "zh"}
    assert carry_over({**WEBHOOK, "secret": None}, before) == WEBHOOK


def test_a_secret_is_not_carried_to_somebody_else() -> None:
    before = READER.read("mine", {**WEBHOOK, "secret": SECRET})
    moved = {"kind": "webhook", "url": "https://evil.example/h"}
    after = READER.read("mine", carry_over(moved, {**WEBHOOK, "secret": SECRET}))
    assert leads_away(after, before, moved)
    assert not leads_away(after, before, {**moved, "secret": "another"})
    assert not leads_away(before, before, WEBHOOK)
