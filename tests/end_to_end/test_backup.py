"""A backup that was made under load comes back, and trainers give again what the service had taken after it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import rlvitals
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.runs import read_run
from rlvitals_monitor.store.soundness import check
from tests.end_to_end.server import DEADLINE_S, Server, serving
from tests.monitor.batches import NOW

pytestmark = pytest.mark.slow
RUN, METRIC, PACE_S = "kept", "policy.loss", 0.005


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str) -> Iterator[Server]:
    monkeypatch.setenv("RLVITALS_DATABASE_URL", database_url)
    with serving(tmp_path / "service") as running:
        for name, value in running.env.items():
            monkeypatch.setenv(name, value)
        yield running


def command(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([str(Path(sys.executable).parent / "rlvitals"), *arguments], env=dict(os.environ))


def test_nothing_that_was_acknowledged_after_a_backup_is_lost_when_it_is_restored(
    server: Server, tmp_path: Path, database_url: str
) -> None:
    file, pause = str(tmp_path / "kept.backup"), threading.Event()
    vitals = rlvitals.init(run=RUN)
    step = 0

    def train(steps: int) -> None:
        nonlocal step
        for _ in range(steps):
            step += 1
            vitals.report(step, {METRIC: 1 / step})
            pause.wait(PACE_S)

    train(100)
    assert vitals.flush(DEADLINE_S)
    with command("backup", file) as making:
        while making.poll() is None:
            train(5)
    assert making.returncode == 0
    train(200)
    assert vitals.flush(DEADLINE_S)
    acknowledged = step
    server.stop()

    with command("restore", file, "--replace") as restoring:
        train(20)
    assert restoring.returncode == 0
    with closing(Store(database_url)) as store, store.read() as connection:
        restored = read_run(connection, RUN, NOW).last_step
    assert restored is not None
    assert 100 <= restored <= acknowledged - 200

    server.start()
    train(20)
    assert vitals.flush(DEADLINE_S)
    assert list(server.series(RUN, METRIC)["step"]) == list(range(1, step + 1))
    assert vitals.counters["dropped"] == 0
    vitals.close()
    with closing(Store(database_url)) as store, store.read() as connection:
        assert [found.fault for found in check(connection) if found.fault] == []
