"""``kill -9`` of the service under a plain training loop, and a restart ten seconds later."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rlvitals_monitor.alerts.settings import RuleSettings
from rlvitals_monitor.backtest import backtest
from rlvitals_monitor.store.engine import Store
from tests.end_to_end import database, loops
from tests.end_to_end.server import Server, wait_until

pytestmark = pytest.mark.slow
RUN = "survivor"
STEPS_BEFORE, STEPS_AFTER = 100, 60
OUTAGE_STEPS = int(10 / loops.PACE_S)
LONGEST_LIFE_S = 180.0
TYPICAL_CALL_S, LONGEST_CALL_S = 0.005, 0.5
"""A busy machine may take the CPU away from any one call; a wait for the service would be seen by both."""

Told = Counter[tuple[str, str, str, int]]
"""(rule, severity, new state, step), and how often it was told."""


class Loop:
    """The loop's process. Its steps are read from what it prints; nobody here looks at a clock."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process, self.steps = process, list[dict[str, float]]()

    def reach(self, step: int) -> None:
        while len(self.steps) < step:
            self.steps.append(self._read())

    def end(self) -> dict[str, Any]:
        """Asks it to stop; its last words, once it has delivered all it had."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        while "flushed" not in (line := self._read()):
            self.steps.append(line)
        return line

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the loop ended after step {len(self.steps)}"
        return dict(json.loads(line))


@contextmanager
def running_loop(cwd: Path) -> Iterator[Loop]:
    command = [sys.executable, loops.__file__, "go_on", RUN]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=cwd, stdin=pipe, stdout=pipe, text=True) as process:
        watchdog = threading.Timer(LONGEST_LIFE_S, process.kill)
        watchdog.start()
        try:
            yield Loop(process)
        finally:
            watchdog.cancel()
            process.kill()


def test_a_loop_does_not_notice_that_the_service_was_killed_and_nothing_is_lost_or_double(
    server: Server, tmp_path: Path
) -> None:
    with running_loop(tmp_path) as loop:
        loop.reach(STEPS_BEFORE)
        wait_until(lambda: any(told(server)), "an alert of before the outage")
        server.kill()
        killed_at = len(loop.steps)
        loop.reach(killed_at + OUTAGE_STEPS)
        server.start()
        loop.reach(killed_at + OUTAGE_STEPS + STEPS_AFTER)
        last_words = loop.end()

    last = len(loop.steps)
    assert last_words == {"steps": last, "flushed": True, "dropped": 0}
    assert_nothing_lost_or_double(server, tmp_path / "service", last)
    assert_alerts_are_those_of_an_undisturbed_run(server, tmp_path / "service")
    assert_nothing_was_noticed(loop.steps[:killed_at], loop.steps[killed_at : killed_at + OUTAGE_STEPS])


def assert_nothing_lost_or_double(server: Server, folder: Path, last: int) -> None:
    for metric in ("policy.loss", "length.truncation_rate"):
        assert list(server.series(RUN, metric)["step"]) == list(range(1, last + 1))
        rolled_up = database.rolled_up(folder, RUN, metric)
        assert rolled_up
        assert set(rolled_up.values()) == {last}
    assert database.count(folder, "attempts", RUN) == 1
    assert database.count(folder, "steps", RUN) == last
    assert database.count(folder, "texts", RUN) == last // loops.TEXT_EVERY


def assert_alerts_are_those_of_an_undisturbed_run(server: Server, folder: Path) -> None:
    """The same steps, judged in one go by the same rules, tell the same changes, each once."""
    store = Store(database.url(folder))
    try:
        episodes = backtest(store, RUN, RuleSettings().load())
    finally:
        store.close()
    fired = Counter((e.alert, e.severity.value, "firing", e.fired) for e in episodes)
    ended = Counter(
        (e.alert, e.severity.value, "resolved", e.resolved) for e in episodes if e.resolved is not None
    )
    assert min(len(fired), len(ended)) > 3, "the planted truncation comes and goes"
    wait_until(lambda: sum(told(server).values()) >= sum((fired + ended).values()), "the last steps to be judged")
    assert told(server) == fired + ended


def told(server: Server) -> Told:
    return Counter(
        (t["alert"]["rule"], t["alert"]["severity"], t["after"], t["step"])
        for t in server.ask(f"/runs/{RUN}/transitions")
        if t["after"] in ("firing", "resolved")
    )


def assert_nothing_was_noticed(before: list[dict[str, float]], outage: list[dict[str, float]]) -> None:
    calls = [step["report_s"] for step in outage]
    assert statistics.median(calls) < TYPICAL_CALL_S
    assert max(calls) < LONGEST_CALL_S
    typical = [statistics.median(step["step_s"] for step in part) for part in (before, outage)]
    assert typical[1] < 1.5 * typical[0]
