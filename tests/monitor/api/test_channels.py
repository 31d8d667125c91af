"""Channels by the API: made, changed and deleted, and their secrets shown to nobody."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select

from rlvitals_monitor.notify.dispatch import route
from rlvitals_monitor.store import channels as table
from rlvitals_monitor.store.tables import audit, deliveries
from tests.monitor.batches import NOW
from tests.monitor.planted import a_transition, plant

V1 = "/api/v1"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MINE = {"name": "mine", "kind": "webhook", "url": "https://mine.example/h/T0KEN-1234567", "secret": SECRET}


@pytest.fixture
def made(client: TestClient) -> None:
    assert client.post(f"{V1}/channels", json=MINE).status_code == 201


def test_a_channel_is_made_and_its_secrets_are_shown_to_nobody(client: TestClient, made: None) -> None:
    listed, read = client.get(f"{V1}/channels"), client.get(f"{V1}/channels/mine")
    assert [(c["name"], c["host"], c["signed"], c["made"]) for c in listed.json()] == [
        ("mine", "mine.example", True, True)
    ]
    assert read.json()["body"] == {"kind": "webhook", "url": "***", "secret": "***"}
    assert read.json()["changed_by"] == "local"
    assert "T0KEN" not in listed.text + read.text
    assert SECRET not in listed.text + read.text


def test_a_change_keeps_the_secrets_that_it_does_not_name(app: FastAPI, client: TestClient, made: None) -> None:
    body = {**client.get(f"{V1}/channels/mine").json()["body"], "severity": "critical"}
    assert client.put(f"{V1}/channels/mine", json=body).status_code == 200
    channel = app.state.channel_book.channels.get("mine")
    assert (channel.url, channel.secret, channel.severity.value) == (MINE["url"], SECRET, "critical")


def test_a_kept_secret_does_not_follow_to_another_host(app: FastAPI, client: TestClient, made: None) -> None:
    moved = {"kind": "webhook", "url": "https://evil.example/h"}
    answer = client.put(f"{V1}/channels/mine", json=moved)
    assert (answer.status_code, "secret: expected to be given anew" in answer.text) == (422, True)
    assert app.state.channel_book.channels.get("mine").host == "mine.example"
    assert client.put(f"{V1}/channels/mine", json={**moved, "secret": "new"}).status_code == 200


def test_a_channel_is_deleted_and_what_waited_for_it_is_dropped(
    app: FastAPI, client: TestClient, made: None
) -> None:
    store = app.state.store
    plant(store, a_transition())
    with store.begin() as conn:
        route(conn, a_transition(), app.state.channel_book.channels, NOW)
    assert client.delete(f"{V1}/channels/mine").status_code == 204
    assert client.delete(f"{V1}/channels/mine").status_code == 404
    assert client.get(f"{V1}/channels").json() == []
    with store.read() as conn:
        row = conn.execute(select(deliveries)).one()
        lines = select(audit.c.who, audit.c.what, audit.c.detail).where(audit.c.what.like("channel %"))
        told = [tuple(line) for line in conn.execute(lines.order_by(audit.c.number))]
    assert (row.state, row.answer) == ("dropped", "the channel was deleted")
    assert told == [
        ("local", "channel created", "mine: webhook to mine.example, from warning"),
        ("local", "channel deleted", "mine, 1 waiting dropped"),
    ]


def test_a_name_is_taken_once(client: TestClient, made: None) -> None:
    assert client.post(f"{V1}/channels", json=MINE).status_code == 409


def test_what_is_wrong_is_refused_and_nothing_is_kept(client: TestClient) -> None:
    for body in ({}, {"name": 5}, {**MINE, "kind": "pigeon"}, {**MINE, "allow_private": True}, {"name": "mine"}):
        answer = client.post(f"{V1}/channels", json=body)
        assert answer.status_code == 422, body
        assert "T0KEN" not in answer.text
    assert client.get(f"{V1}/channels").json() == []
    assert client.put(f"{V1}/channels/none", json=MINE).status_code == 404
    assert client.get(f"{V1}/channels/status").json()["problems"] == []


def test_only_an_admin_may_look_at_or_change_a_channel(
    client: TestClient, stranger: TestClient, token_for: Callable[..., dict[str, str]]
) -> None:
    for headers, code in (({}, 401), (token_for("operate", name="op"), 403)):
        assert stranger.post(f"{V1}/channels", json=MINE, headers=headers).status_code == code
        assert stranger.get(f"{V1}/channels/mine", headers=headers).status_code == code
        assert stranger.put(f"{V1}/channels/mine", json=MINE, headers=headers).status_code == code
        assert stranger.delete(f"{V1}/channels/mine", headers=headers).status_code == code


def test_problems_of_the_file_are_told(
    app: FastAPI, client: TestClient, token_for: Callable[..., dict[str, str]]
) -> None:
    with app.state.store.begin() as conn:
        table.create(conn, "broken", {"kind": "pigeon", "url": "https://mine.example/T0KEN"}, "ann", NOW)
    told = client.get(f"{V1}/channels/status", headers=token_for("read"))
    assert "channel broken: expected one of" in told.json()["problems"][0]
    assert "T0KEN" not in told.text
