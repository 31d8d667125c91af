"""``kill -9`` of either side: no report is lost or double, no alert is told twice, and training shows nothing."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

import rlvitals
from tests.client.integrations import tiny
from tests.end_to_end import killed
from tests.end_to_end.conftest import MakeTrainer
from tests.end_to_end.server import Server, serving, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
OUTAGE_STEPS = 60
LONGEST_CALL_S = 0.5
"""Generous for a shared machine; a wait for the dead service would last its time-out, 10 s."""


def test_the_last_report_of_a_killed_trainer_is_in_the_database_after_sync(policy: Path, tmp_path: Path) -> None:
    env = {**os.environ, "RLVITALS_MODE": "offline"}
    told = subprocess.run(
        [sys.executable, "-m", killed.__name__, str(policy), str(tmp_path / "output"), "victim"],
        env=env,
        capture_output=True,
        timeout=180,
        check=False,
    )
    assert told.returncode == -signal.SIGKILL, told.stderr[-2000:]
    with serving(tmp_path / "service") as server:
        env = {**os.environ, **server.env}
        rlvitals_command = str(Path(sys.executable).parent / "rlvitals")
        subprocess.run([rlvitals_command, "sync"], env=env, capture_output=True, timeout=60, check=True)
        assert server.last_step("victim") == killed.LAST_STEP
        assert list(server.series("victim", "policy.loss")["step"]) == [1, 2, 3]


def test_the_service_may_be_killed_in_mid_run(make: MakeTrainer, server: Server) -> None:
    trainer = make(max_steps=100_000)
    reporter = rlvitals.attach(trainer, run="survivor")
    reached = _Steps()
    trainer.add_callback(reached.callback)
    outage: dict[str, int] = {}

    def kill_and_restart() -> None:
        try:
            wait_until(lambda: (server.last_step("survivor") or 0) >= 20, "the first steps to arrive")
            server.kill()
            outage["first"] = reached.now
            reached.wait_for(outage["first"] + OUTAGE_STEPS)
            outage["last"] = reached.now
            server.start()
            reached.wait_for(reached.now + 20)
        finally:
            reached.stop.set()

    thread = threading.Thread(target=kill_and_restart)
    thread.start()
    trainer.train()
    thread.join()
    assert outage["last"] >= outage["first"] + OUTAGE_STEPS
    assert reporter.flush(60)
    last = trainer.state.global_step
    wait_until(lambda: server.last_step("survivor") == last, "the last step to arrive")

    stored = server.series("survivor", "progress.step_time")
    assert list(stored["step"]) == list(range(1, last + 1)), "no report is missing or double"
    assert reporter.counters["dropped"] == 0
    _assert_no_alert_is_double(server, "survivor")
    _assert_training_showed_nothing(reporter, outage)


class _Steps:
    """How far the trainer is, for a thread to wait on; and the sign that it may end."""

    def __init__(self) -> None:
        self.now, self.stop = 0, threading.Event()
        self._changed = threading.Condition()
        self.callback = tiny.AtStepEnd(self._reached)

    def wait_for(self, step: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.now >= step, 120), f"step {step} was never reached"

    def _reached(self, step: int) -> None:
        with self._changed:
            self.now = step
            self._changed.notify_all()
        self.callback.stopping = self.stop.is_set()


def _assert_no_alert_is_double(server: Server, run: str) -> None:
    transitions = server.ask(f"/runs/{run}/transitions")
    told = Counter((t["alert"]["id"], t["after"], t["step"]) for t in transitions)
    assert told, "a random policy never stops by itself: truncation must have fired"
    assert max(told.values()) == 1
    firing = server.ask(f"/alerts?run={run}&state=firing")["items"]
    open_alerts = Counter((alert["rule"], alert["severity"]) for alert in firing)
    assert max(open_alerts.values()) == 1


def _assert_training_showed_nothing(reporter: rlvitals.Reporter, outage: dict[str, int]) -> None:
    found = tiny.steps(reporter)
    inside = [s.values for s in found if outage["first"] < s.step <= outage["last"]]
    before = [s.values for s in found if s.step <= outage["first"]]
    assert max(values["rlvitals.overhead"] for values in inside) < LONGEST_CALL_S
    typical = [statistics.median(values["progress.step_time"] for values in part) for part in (before, inside)]
    assert typical[1] < 3 * typical[0]
