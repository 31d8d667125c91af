"""The demo's way with a tiny trainer: a KL pull that dominates, its alert, an approval, the signal's answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

import rlvitals
from tests.client.integrations import tiny
from tests.end_to_end.conftest import MakeTrainer
from tests.end_to_end.server import Server, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
RUN, RULE = "steered", "kl_pull_dominates"
BETA, SANE_BETA = 60.0, 6.0


def test_an_approved_coefficient_changes_the_trainer_at_the_next_boundary_and_closes_the_alert(
    make: MakeTrainer, server: Server
) -> None:
    trainer = make(max_steps=100_000, beta=BETA, learning_rate=1e-3)
    reporter = rlvitals.attach(trainer, run=RUN)
    with person(trainer, lambda: approve_when_proposed(server)):
        trainer.train()
    assert reporter.flush(60)
    reporter.close()
    last = trainer.state.global_step
    wait_until(lambda: server.last_step(RUN) == last, "the last step to arrive")

    assert trainer.beta == SANE_BETA
    (command,) = server.ask(f"/commands?run={RUN}&state=applied")["items"]
    assert (command["kind"], command["rule"], command["argument"]) == ("set_kl_coef", RULE, SANE_BETA)
    assert (command["before"], command["after"]) == (BETA, SANE_BETA)
    coefficients = server.series(RUN, "kl.coef")
    applied = command["step"]
    assert coefficients["step"] == list(range(1, last + 1))
    assert coefficients["value"] == [BETA] * applied + [SANE_BETA] * (last - applied)
    audit = server.ask(f"/audit?run={RUN}")["items"]
    assert [line["what"] for line in audit if line["command_id"] == command["id"]] == [
        "applied",
        "delivered",
        "approved",
        "proposed",
    ]


def approve_when_proposed(server: Server) -> None:
    """Approves another value than the proposed one, and stays until the alert is closed."""
    wait_until(lambda: bool(proposals(server)), "the proposal")
    (alert,) = alerts(server, "firing")
    (proposal,) = proposals(server)
    assert proposal["alert_id"] == alert["id"]
    assert proposal["argument"] < BETA
    server.ask(f"/commands/{proposal['id']}/approve", {"argument": SANE_BETA})
    wait_until(lambda: alert["id"] in [a["id"] for a in alerts(server, "resolved")], "the alert's end")


def proposals(server: Server) -> list[Mapping[str, Any]]:
    return list(server.ask(f"/commands?run={RUN}&state=proposed")["items"])


def alerts(server: Server, state: str) -> list[Mapping[str, Any]]:
    found = server.ask(f"/alerts?run={RUN}&state={state}")["items"]
    return [alert for alert in found if alert["rule"] == RULE]


@contextmanager
def person(trainer: Any, act: Callable[[], None]) -> Iterator[None]:
    """Acts beside the training, which ends when they have done; what they found wrong is raised here."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        acting = beside.submit(act)
        callback = tiny.AtStepEnd(lambda step: setattr(callback, "stopping", acting.done()))
        trainer.add_callback(callback)
        yield
        acting.result()
