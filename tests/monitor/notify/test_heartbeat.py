"""The dead man's switch: what is well, what is pinged, and where to."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from rlvitals.contract.health import PartHealth
from rlvitals_monitor.app import create_app
from rlvitals_monitor.heartbeat import Heartbeat, make_watcher
from rlvitals_monitor.notify.channel import Channel, ChannelError, ChannelKind
from rlvitals_monitor.notify.settings import NotifySettings
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.wellness import LEAST_FREE, Beats, Facts, judge, read_facts, room_words
from tests.monitor.batches import NOW
from tests.monitor.conftest import BASE_URL
from tests.monitor.notify.conftest import Opened, channel_to
from tests.monitor.notify.provider import Said

WELL = (PartHealth(name="database", well=True), PartHealth(name="worker", well=True))
AILING = (PartHealth(name="database", well=True), PartHealth(name="worker", well=False, words="it hangs"))


def watcher_at(url: str, **given: bool) -> Channel:
    return Channel(name="heartbeat", kind=ChannelKind.WEBHOOK, url=url, **given)  # type: ignore[arg-type]


def beating(watcher: Channel, *parts: PartHealth, **given: object) -> Heartbeat:
    return Heartbeat(watcher, lambda now: parts, every_s=60.0, clock=lambda: NOW, **given)  # type: ignore[arg-type]


def test_a_service_that_is_well_says_so_and_one_that_is_not_says_what_fails(
    provide: Opened, client: httpx2.Client
) -> None:
    watcher = provide()
    told: list[tuple[bool, bool]] = []
    assert beating(channel_to(watcher), *WELL, told=lambda *ping: told.append(ping)).beat(client)
    assert beating(channel_to(watcher), *AILING, told=lambda *ping: told.append(ping)).beat(client)
    fine, bad = watcher.wait_for(2)
    assert (fine.path, fine.body) == ("/hook/T0KEN", b"database: well\nworker: well")
    assert (bad.path, bad.body) == ("/hook/T0KEN/fail", b"database: well\nworker: it hangs")
    assert told == [(True, True), (False, True)]


@pytest.mark.parametrize("said", [Said(status=404), Said(status=500), Said(status=302)])
def test_a_ping_that_is_not_taken_is_told_without_the_address(
    provide: Opened, client: httpx2.Client, said: Said, caplog: pytest.LogCaptureFixture
) -> None:
    heartbeat = beating(channel_to(provide(said)), *WELL)
    assert not heartbeat.beat(client)
    assert (heartbeat.view.sent_at, heartbeat.view.delivered_at) == (NOW, None)
    assert heartbeat.view.answer.startswith(f"HTTP {said.status}")
    assert "T0KEN" not in caplog.text + str(heartbeat.view)


def test_a_watcher_in_the_local_network_needs_the_operators_word(client: httpx2.Client) -> None:
    watcher = watcher_at("https://watch.example/ping")
    heartbeat = beating(watcher, *WELL, resolver=lambda host, port: ["169.254.169.254"])
    assert not heartbeat.beat(client)
    assert "link-local" in heartbeat.view.answer


def test_a_watcher_that_is_away_is_no_failure_of_ours(client: httpx2.Client) -> None:
    watcher = watcher_at("http://127.0.0.1:9/ping", allow_private=True)
    assert not beating(watcher, *WELL).beat(client)


def test_the_address_is_judged_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_watcher(NotifySettings()) is None
    monkeypatch.setenv("RLVITALS_HEARTBEAT_URL", "http://watch.example/s3cret-ping")
    with pytest.raises(ChannelError, match="url of heartbeat: expected https") as found:
        make_watcher(NotifySettings())
    assert "s3cret" not in str(found.value)


@pytest.mark.parametrize(
    ("facts", "ill"),
    [
        (Facts(database=""), {}),
        (Facts(database="", worker=Beats(at=NOW), dispatcher=Beats(at=NOW)), {}),
        (Facts(database="the database does not answer: OSError"), {"database": "does not answer"}),
        (
            Facts(database="", worker=Beats(at=NOW - timedelta(seconds=121))),
            {"worker": "no sign of life for 121 s"},
        ),
        (Facts(database="", dispatcher=Beats(at=NOW - timedelta(minutes=9))), {"dispatcher": "no sign of life"}),
        (Facts(database="", worker=Beats(at=NOW, failing={"routing": NOW - timedelta(seconds=59)})), {}),
        (
            Facts(database="", worker=Beats(at=NOW, failing={"routing": NOW - timedelta(seconds=61)})),
            {"worker": "routing has failed for 61 s"},
        ),
    ],
)
def test_what_is_well_is_judged_by_facts_and_the_clock(facts: Facts, ill: dict[str, str]) -> None:
    found = {part.name: part.words for part in judge(facts, NOW) if not part.well}
    assert found.keys() == ill.keys()
    assert all(words in found[name] for name, words in ill.items())


def test_a_database_that_does_not_answer_is_a_fact(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'no' / 'folder' / 'x.db'}")
    assert read_facts(store, None, None).database.startswith("the database does not answer: ")


def test_a_database_that_can_only_be_read_is_not_well_until_a_write_succeeds(store: Store) -> None:
    for said in ("database is locked", "database or disk is full"):
        fault = OperationalError("INSERT", {}, sqlite3.OperationalError(said))
        with pytest.raises(OperationalError), store.begin():
            raise fault
        told = read_facts(store, None, None).database
        assert told == ("" if "locked" in said else f"it can be read; the last write failed: {said}")
    with store.begin() as connection:
        connection.execute(text("SELECT 1"))
    assert read_facts(store, None, None).database == ""


@pytest.mark.parametrize(
    ("free", "words"), [(None, ""), (LEAST_FREE, ""), (3 << 20, "only 3 MiB are free"), (0, "only 0 MiB are free")]
)
def test_a_disk_that_is_nearly_full_is_told_before_it_is(free: int | None, words: str) -> None:
    told = room_words("", free)
    assert told.startswith(words) if words else told == ""


def test_the_health_of_each_part_is_told_to_readers_and_to_prometheus(app: FastAPI, stranger: TestClient) -> None:
    assert stranger.get("/api/v1/health").status_code == 401
    stranger.headers["authorization"] = f"Bearer {app.state.local_token}"
    told = stranger.get("/api/v1/health").json()
    assert (told["well"], told["parts"], told["heartbeat"]) == (
        True,
        [{"name": "database", "well": True, "words": ""}],
        None,
    )
    assert 'rlvitals_part_well{part="database"} 1.0' in stranger.get("/metrics").text


def test_a_started_service_pings_and_shows_it(
    provide: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = provide()
    monkeypatch.setenv("RLVITALS_HEARTBEAT_URL", watcher.url)
    monkeypatch.setenv("RLVITALS_ALLOW_PRIVATE", "true")
    monkeypatch.setattr("rlvitals_monitor.heartbeat.FIRST_S", 0.01)
    app = create_app(Settings(home=tmp_path / "home"))
    with TestClient(app, base_url=BASE_URL) as client:
        (ping,) = watcher.wait_for(1)
        client.headers["authorization"] = f"Bearer {app.state.local_token}"
        told = client.get("/api/v1/health").json()
    assert ping.body == b"database: well\nworker: well\ndispatcher: well"
    assert told["heartbeat"]["host"] == "127.0.0.1"
    assert "T0KEN" not in str(told)
