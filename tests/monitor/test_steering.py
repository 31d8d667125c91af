"""One alert's way through the running service: report, rule, message, proposal, approval, receipt, outcome."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rlvitals.contract.command import CommandKind
from rlvitals_monitor.app import create_app
from rlvitals_monitor.clocks import utc_now
from rlvitals_monitor.settings import Settings
from tests.monitor.conftest import BASE_URL
from tests.monitor.notify.provider import Got, Provider

V1 = "/api/v1"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    with Provider().running() as running:
        monkeypatch.setenv("RLVITALS_WEBHOOK_URL", running.url)
        monkeypatch.setenv("RLVITALS_WEBHOOK_SECRET", "hush hush")
        monkeypatch.setenv("RLVITALS_ALLOW_PRIVATE", "1")
        yield running


@pytest.fixture
def service(settings: Settings, provider: Provider) -> Iterator[TestClient]:
    app = create_app(settings)
    with TestClient(app, base_url=BASE_URL) as client:
        client.headers["authorization"] = f"Bearer {app.state.local_token}"
        yield client


def report(service: TestClient, *rows: tuple[int, float], **other: Any) -> dict[str, Any]:
    """Sends (step, pull ratio) rows; the receipt."""
    now_s = utc_now().timestamp()
    body = {
        "run": {
            "id": "r1",
            "name": "<!channel> run",
            "config": {"kl_coef": 1.0},
            "capabilities": {kind.value: "" for kind in CommandKind},
        },
        "attempt": "t1",
        "names": ["kl.pull_ratio", "kl.coef"],
        "rows": [[step, step, now_s, ratio, 1.0] for step, ratio in rows],
        **other,
    }
    answer = service.post(f"{V1}/reports", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def told(got: Got) -> tuple[str, str]:
    body = json.loads(got.body)
    return body["type"], body["alert"]["rule"]


def test_an_alert_is_told_proposed_approved_applied_and_its_recovery_told(
    service: TestClient, provider: Provider
) -> None:
    assert report(service, *((step, 10.0) for step in range(1, 11)))["commands"] == []
    (firing,) = provider.wait_for(1)
    assert told(firing) == ("alert.firing", "kl_pull_dominates")
    assert firing.headers["webhook-signature"].startswith("v1,")

    (proposed,) = service.get(f"{V1}/commands", params={"state": "proposed"}).json()["items"]
    assert (proposed["kind"], proposed["argument"], proposed["rule"]) == (
        "set_kl_coef",
        0.1,
        "kl_pull_dominates",
    )
    assert "0.05 was wanted" in proposed["reason"]
    approved = service.post(f"{V1}/commands/{proposed['id']}/approve", json={"argument": 0.2})
    assert approved.status_code == 200, approved.text

    (command,) = report(service)["commands"]
    assert (command["id"], command["argument"], command["who"]) == (proposed["id"], 0.2, "local")
    outcome = {"command_id": command["id"], "state": "applied", "step": 11, "before": 1.0, "after": 0.2}
    receipt = report(service, outcomes=[{"seq": 11, **outcome}])
    assert (receipt["commands"], receipt["refused"]) == ([], [])
    (applied,) = service.get(f"{V1}/commands", params={"run": "r1"}).json()["items"]
    assert (applied["state"], applied["before"], applied["after"], applied["step"]) == ("applied", 1.0, 0.2, 11)

    report(service, *((step, 0.2) for step in range(12, 30)))
    assert told(provider.wait_for(2)[1]) == ("alert.resolved", "kl_pull_dominates")
    lines = service.get(f"{V1}/audit", params={"run": "r1"}).json()["items"]
    assert [line["what"] for line in lines] == ["applied", "delivered", "approved", "proposed"]
    (channel,) = service.get(f"{V1}/channels").json()
    assert channel["failed"] == 0
