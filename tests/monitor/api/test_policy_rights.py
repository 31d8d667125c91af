"""Who may choose policies: an operator approves commands, but hands nothing over to a machine."""

from __future__ import annotations

from collections.abc import Callable

from fastapi.testclient import TestClient

V1 = "/api/v1"
CHOICE = {"scope": "run", "name": "r1", "policy": "auto"}


def test_only_an_administrator_chooses_and_a_reader_sees(
    stranger: TestClient, token_for: Callable[..., dict[str, str]]
) -> None:
    operator, reader = token_for("operate", name="ada"), token_for("read", name="ben")
    assert stranger.put(f"{V1}/policies", json=CHOICE).status_code == 401
    assert stranger.put(f"{V1}/policies", json=CHOICE, headers=operator).status_code == 403
    gone = stranger.delete(f"{V1}/policies", params={"scope": "run", "name": "r1"}, headers=operator)
    assert gone.status_code == 403
    assert stranger.get(f"{V1}/policies", headers=reader).status_code == 200
    for path in ("audit", "audit/export", "audit/check"):
        assert stranger.get(f"{V1}/{path}").status_code == 401
        assert stranger.get(f"{V1}/{path}", headers=reader).status_code == 200
