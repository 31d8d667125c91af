"""Whatever is asked of the API gets an answer that its own document allows, on both databases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlvitals_monitor.app import create_app
from rlvitals_monitor.settings import Settings
from tests.fuzz.api_attack import Attack, check_problem
from tests.fuzz.budget import REQUESTS, SEED
from tests.monitor.planted import a_transition, an_alert, plant_run, plant_transition
from tests.served import Served

pytest.importorskip("schemathesis", reason="NO ATTACK ON THE API: schemathesis is not installed")


@pytest.fixture
def served(database_url: str, tmp_path: Path) -> Iterator[Served]:
    app = create_app(Settings(home=tmp_path / "home", database_url=database_url), with_worker=False)
    with Served(app) as served:
        for run in ("r1", "r2", "r3", "r4"):
            served.post("/reports", batch(run))
        with served.store.begin() as connection:
            plant_run(connection, "planted")
            plant_transition(connection, a_transition(an_alert(run="planted")))
        yield served


def batch(run: str) -> dict[str, Any]:
    rows = [[seq, seq, time.time(), value] for seq, value in enumerate((0.5, "NaN", "Infinity", "-Infinity"), 1)]
    text = {"seq": 9, "step": 1, "sample": 0, "prompt": "2 + 2", "completion": "4 \x00 \u202e"}
    histogram = {"seq": 10, "step": 1, "metric": "length.mean", "edges": [0, 1, 2], "counts": [1, 2]}
    return {
        "run": {"id": run, "project": "demo", "config": {"kl_coef": 0.1}},
        "attempt": "a",
        "names": ["reward.mean"],
        "rows": rows,
        "texts": [text],
        "histograms": [histogram],
    }


def test_no_request_that_the_document_allows_or_forbids_fails_inside(served: Served) -> None:
    attack = Attack(served)
    attack.know(run="r1", alert="a1", rule="nonfinite", cause="nonfinite", metric="reward.mean", attempt="a")
    attack.know(run="planted", number=1)
    fired = attack.run(REQUESTS)
    print(f"{fired} requests, FUZZ_SEED={SEED}: {dict(sorted(attack.statuses.items()))}")
    assert fired >= REQUESTS
    assert attack.statuses[200], "nothing was answered: the attack does not get inside"


def test_an_answer_that_is_no_problem_document_would_be_found() -> None:
    answer = SimpleNamespace(status_code=500, headers={"content-type": ("text/plain",)})
    with pytest.raises(AssertionError, match="boom"):
        check_problem(answer, "boom")
