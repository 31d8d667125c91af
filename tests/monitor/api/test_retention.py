"""How long data are kept, over REST: chosen by project, inherited, taken back, audited."""

from __future__ import annotations

from fastapi.testclient import TestClient

from tests.monitor.api.test_deletion import report

FOREVER = {"points_days": None, "texts_days": None, "histograms_days": None, "runs_days": None}


def shown(client: TestClient) -> dict[str, dict[str, object]]:
    return {line["project"]: line for line in client.get("/api/v1/retention").json()["items"]}


def test_everything_is_kept_for_ever_until_somebody_says_otherwise(client: TestClient) -> None:
    report(client)
    lines = shown(client)
    assert list(lines) == ["", "default"]
    assert all(lines[""][name] is None for name in FOREVER)
    assert lines["default"]["inherited"] is True


def test_a_projects_own_line_goes_before_that_for_all_and_is_taken_back(client: TestClient) -> None:
    report(client)
    client.put("/api/v1/retention", json={"project": "", "texts_days": 30})
    mine = client.put("/api/v1/retention", json={"project": "default", "points_days": 90, "runs_days": 400.5})
    assert mine.json() == {
        **FOREVER, "project": "default", "points_days": 90.0, "runs_days": 400.5,
        "inherited": False, "changed_at": "2026-11-29T12:00:00Z", "changed_by": "local",
    }  # fmt: skip
    assert shown(client)["default"]["texts_days"] is None
    assert client.delete("/api/v1/retention?project=default").status_code == 200
    assert shown(client)["default"]["texts_days"] == 30.0
    assert client.delete("/api/v1/retention?project=default").status_code == 404
    said = [line["detail"] for line in client.get("/api/v1/audit").json()["items"]][::-1]
    assert said[1:] == [
        "all projects: points for ever, texts 30 d, histograms for ever, runs for ever",
        "project 'default': points 90 d, texts for ever, histograms for ever, runs 400.5 d",
        "project 'default'",
    ]


def test_what_are_no_days_is_refused(client: TestClient) -> None:
    for days in ("NaN", "Infinity", "-Infinity", 0, -1, 1e9, "soon", [3]):
        answer = client.put("/api/v1/retention", json={"project": "p", "points_days": days})
        assert answer.status_code == 422, days
        assert "points_days" in answer.json()["field"]
    assert set(shown(client)) == {""}


def test_only_an_admin_chooses(client: TestClient, stranger: TestClient, token_for: object) -> None:
    for scope in ("read", "operate"):
        headers = token_for(scope)  # type: ignore[operator]
        assert stranger.put("/api/v1/retention", json={"texts_days": 3}, headers=headers).status_code == 403
        assert stranger.delete("/api/v1/retention", headers=headers).status_code == 403
    assert stranger.get("/api/v1/retention", headers=token_for("read")).status_code == 200  # type: ignore[operator]
