"""Two judges of one database: one has an attempt, the other passes it over and does not wait."""

from __future__ import annotations

import pytest

from rlvitals_monitor.alerts.engine import advance
from rlvitals_monitor.store import evaluations
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from tests.monitor.batches import NOW, batch, step


@pytest.mark.postgres
def test_an_attempt_that_another_judge_has_is_passed_over_until_that_one_is_done(postgres_url: str) -> None:
    store = Store(postgres_url)
    with store.begin() as connection:
        numbers = [
            store_batch(connection, batch(step(1, 1, {"policy.loss": 1.0}), run=run), NOW).attempt_number
            for run in ("r1", "r2")
        ]
    with store.begin() as first:
        assert advance(first, numbers[0], (), NOW).steps == 1
        with store.begin() as second:
            assert not evaluations.claim(second, numbers[0])
            assert advance(second, numbers[0], (), NOW).steps == 0
            assert advance(second, numbers[1], (), NOW).steps == 1
    with store.begin() as connection:
        assert evaluations.claim(connection, numbers[0])
        assert evaluations.cursor(connection, numbers[0]) == 1
    store.close()


def test_a_claim_ends_with_its_transaction(store: Store) -> None:
    for _ in range(2):
        with store.begin() as connection:
            assert evaluations.claim(connection, 7)
