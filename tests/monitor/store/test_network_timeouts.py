"""A session on PostgreSQL waits for no lock for ever and holds none so, unless its address says so itself."""

from __future__ import annotations

import pytest
from sqlalchemy import make_url, text

from rlvitals_monitor.store.engine import Store

pytestmark = pytest.mark.postgres


def shown(url: str, name: str) -> str:
    store = Store(url)
    try:
        with store.read() as connection:
            return str(connection.scalar(text(f"SHOW {name}")))
    finally:
        store.close()


def test_waiting_and_holding_have_an_end(postgres_url: str) -> None:
    assert shown(postgres_url, "lock_timeout") == "10s"
    assert shown(postgres_url, "idle_in_transaction_session_timeout") == "30s"


def test_what_the_address_says_stands(postgres_url: str) -> None:
    own = make_url(postgres_url).update_query_dict({"options": "-c lock_timeout=7000"})
    assert shown(own.render_as_string(hide_password=False), "lock_timeout") == "7s"
