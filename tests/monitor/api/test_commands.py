"""Commands, audit, channels and deliveries over REST, on both databases."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals.contract.alert import Transition
from rlvitals_monitor.api.deps import utc_now
from rlvitals_monitor.control import mailbox
from rlvitals_monitor.control.policy import Policies
from rlvitals_monitor.notify.channel import Channels
from rlvitals_monitor.notify.channel_book import ChannelBook
from rlvitals_monitor.notify.dispatch import deliver_due, route
from rlvitals_monitor.notify.post import build_client
from tests.monitor.notify.conftest import channel_to, provide
from tests.monitor.notify.provider import Provider, Said
from tests.monitor.planted import NOW, a_transition, later, plant

__all__ = ["provide"]

Opened = Callable[..., Provider]
V1 = "/api/v1"


@pytest.fixture
def proposed(app: FastAPI, client: TestClient) -> str:
    """The id of a proposed command of run r1."""
    app.dependency_overrides[utc_now] = lambda: later(10)
    transition: Transition = a_transition()
    plant(app.state.store, transition)
    with app.state.store.begin() as conn:
        made = mailbox.propose(conn, transition, Policies(), NOW)
    return made.id if dataclasses.is_dataclass(made) and hasattr(made, "id") else ""


def test_a_proposal_is_listed_approved_with_another_value_and_audited(client: TestClient, proposed: str) -> None:
    (shown,) = client.get(f"{V1}/commands", params={"run": "r1", "state": "proposed"}).json()["items"]
    assert (shown["id"], shown["kind"], shown["argument"]) == (proposed, "set_kl_coef", 0.05)
    assert shown["bounds"] == pytest.approx({"low": 0.01, "high": 1.0})
    answer = client.post(f"{V1}/commands/{proposed}/approve", json={"argument": 0.01})
    assert answer.status_code == 200
    assert (answer.json()["state"], answer.json()["argument"], answer.json()["decided_by"]) == (
        "pending",
        0.01,
        "local",
    )
    lines = client.get(f"{V1}/audit", params={"run": "r1"}).json()["items"]
    assert [(line["what"], line["who"]) for line in lines] == [
        ("approved", "local"),
        ("proposed", "rule:kl_pull_dominates"),
    ]


def test_one_command_is_asked_for_by_its_id(client: TestClient, proposed: str) -> None:
    (listed,) = client.get(f"{V1}/commands").json()["items"]
    assert client.get(f"{V1}/commands/{proposed}").json() == listed
    gone = client.get(f"{V1}/commands/nothing")
    assert (gone.status_code, gone.json()["detail"]) == (404, "there is no command 'nothing'")


def test_the_command_of_a_run_that_was_deleted_is_gone_with_it(client: TestClient, proposed: str) -> None:
    assert client.delete(f"{V1}/runs/r1").status_code < 300
    assert client.get(f"{V1}/commands/{proposed}").status_code == 410


def test_a_second_decision_gets_a_clear_409(client: TestClient, proposed: str) -> None:
    assert client.post(f"{V1}/commands/{proposed}/deny", json={"reason": "as planned"}).status_code == 200
    late = client.post(f"{V1}/commands/{proposed}/approve")
    assert late.status_code == 409
    assert late.headers["content-type"] == "application/problem+json"
    assert late.json()["type"] == "urn:rlvitals:problem:conflict"
    assert "is denied by local" in late.json()["detail"]


@pytest.mark.parametrize("argument", ['"NaN"', "NaN", "Infinity", "-1", "0", "true", '"0.05"', "1e999", "99"])
def test_an_argument_that_is_no_number_in_bounds_is_refused_with_its_field(
    client: TestClient, proposed: str, argument: str
) -> None:
    answer = client.post(
        f"{V1}/commands/{proposed}/approve",
        content=f'{{"argument": {argument}}}',
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 422
    assert answer.json()["field"] == "argument"
    assert client.get(f"{V1}/commands").json()["items"][0]["state"] == "proposed"


def test_a_persons_own_command_is_created_and_wakes_who_watches_the_run(
    app: FastAPI, client: TestClient, proposed: str
) -> None:
    before = app.state.live.version("r1")
    answer = client.post(f"{V1}/runs/r1/commands", json={"kind": "pause", "argument": 60, "why": "lunch"})
    assert answer.status_code == 201
    assert (answer.json()["state"], answer.json()["argument"], answer.json()["why"]) == ("pending", 60.0, "lunch")
    assert app.state.live.version("r1") > before


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/runs/r1/commands", {"kind": "explode"}, 422),
        ("/runs/r1/commands", {"kind": "set_kl_coef"}, 422),
        ("/runs/r1/commands", {"kind": "set_kl_coef", "argument": 0.02}, 409),
        ("/runs/r1/commands", {"kind": "stop", "why": "x" * 1001}, 422),
        ("/runs/nobody/commands", {"kind": "stop"}, 404),
        ("/commands/nothing/approve", {}, 404),
        ("/commands/nothing/deny", {}, 404),
        ("/channels/nothing/test", None, 404),
    ],
)
def test_what_cannot_be_done_is_a_problem_of_its_kind(
    client: TestClient, proposed: str, path: str, body: object, status: int
) -> None:
    answer = client.post(f"{V1}{path}", json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


def test_reading_takes_a_reader_and_steering_an_operator(
    stranger: TestClient, client: TestClient, proposed: str, token_for: Callable[..., dict[str, str]]
) -> None:
    reader, operator = token_for("read"), token_for("operate", name="ada")
    for path in ("commands", "audit", "channels", "deliveries"):
        assert stranger.get(f"{V1}/{path}").status_code == 401
        assert stranger.get(f"{V1}/{path}", headers=reader).status_code == 200
    for path in (f"commands/{proposed}/approve", f"commands/{proposed}/deny", "channels/x/test"):
        assert stranger.post(f"{V1}/{path}").status_code == 401
        assert stranger.post(f"{V1}/{path}", headers=reader).status_code == 403
    assert stranger.post(f"{V1}/runs/r1/commands", headers=reader, json={"kind": "stop"}).status_code == 403
    approved = stranger.post(f"{V1}/commands/{proposed}/approve", headers=operator)
    assert approved.json()["decided_by"] == "ada"


def test_commands_are_paged(client: TestClient, proposed: str) -> None:
    for kind in ("stop", "checkpoint"):
        assert client.post(f"{V1}/runs/r1/commands", json={"kind": kind}).status_code == 201
    first = client.get(f"{V1}/commands", params={"limit": 2}).json()
    second = client.get(f"{V1}/commands", params={"limit": 2, "cursor": first["next"]}).json()
    assert {item["kind"] for item in first["items"]} == {"stop", "checkpoint"}
    assert [item["kind"] for item in second["items"]] == ["set_kl_coef"]
    assert second["next"] == ""
    assert client.get(f"{V1}/commands", params={"cursor": "nonsense"}).status_code == 422
    lines = client.get(f"{V1}/audit", params={"limit": 2}).json()
    rest = client.get(f"{V1}/audit", params={"limit": 2, "cursor": lines["next"]}).json()
    assert [line["what"] for line in rest["items"]] == ["proposed", "token created"]


def test_channels_show_how_they_fare_and_never_their_address(
    app: FastAPI, client: TestClient, proposed: str, provide: Opened
) -> None:
    provider = provide(Said(status=404, body=b"no hook at /hook/T0KEN"))
    channels = Channels(items=(channel_to(provider),))
    app.state.channel_book = ChannelBook(channels, NOW)
    with app.state.store.begin() as conn:
        route(conn, a_transition(), channels, NOW)
    with build_client() as sender:
        deliver_due(app.state.store, channels, NOW, sender)
    answer = client.get(f"{V1}/channels")
    assert answer.json() == [
        {
            "name": "pager",
            "kind": "webhook",
            "host": "127.0.0.1",
            "severity": "warning",
            "send_resolved": True,
            "signed": True,
            "waiting": 0,
            "delivered": 0,
            "failed": 1,
            "dropped": 0,
            "answer": "HTTP 404: no hook at ***",
            "made": False,
        }
    ]
    delivery = client.get(f"{V1}/deliveries", params={"run": "r1"}).json()["items"][0]
    assert (delivery["state"], delivery["transition_id"], delivery["attempts"]) == ("failed", "x1", 1)
    (sent,) = client.get(f"{V1}/deliveries/{delivery['id']}/sends").json()
    assert (sent["number"], sent["verdict"], sent["answer"]) == (1, "permanent", "HTTP 404: no hook at ***")
    assert client.get(f"{V1}/deliveries/unknown/sends").status_code == 404
    assert "T0KEN" not in answer.text


def test_a_channel_is_tested_with_the_providers_own_words(
    app: FastAPI, client: TestClient, provide: Opened
) -> None:
    provider = provide(Said(status=403, body=b"action_prohibited"))
    app.state.channel_book = ChannelBook(Channels(items=(channel_to(provider),)), NOW)
    answer = client.post(f"{V1}/channels/pager/test")
    assert answer.json() == {"channel": "pager", "delivered": False, "answer": "HTTP 403: action_prohibited"}
