"""``kill -9`` of a plain training loop right after ``report()``, without any service: nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end import loops
from tests.end_to_end.database import count
from tests.end_to_end.server import Server, serving

pytestmark = pytest.mark.slow
RUNS = {"first-report": 1, "many-reports": 700}


def die(run: str, steps: int, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, loops.__file__, "die", run, str(steps)],
        env={**os.environ, "RLVITALS_URL": "http://127.0.0.1:9"},
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()[-2000:]


def sync(server: Server) -> str:
    command = [str(Path(sys.executable).parent / "rlvitals"), "sync"]
    done = subprocess.run(
        command, env={**os.environ, **server.env}, capture_output=True, timeout=60, check=True, text=True
    )
    return done.stdout


def test_sync_brings_the_last_report_of_a_killed_loop_once_with_all_kinds_of_numbers(tmp_path: Path) -> None:
    for run, steps in RUNS.items():
        die(run, steps, tmp_path)
    with serving(tmp_path / "service") as server:
        assert sync(server).startswith("2 journals sent")
        assert sync(server).startswith("0 journals sent")
        for run, steps in RUNS.items():
            assert server.last_step(run) == steps
            assert list(server.series(run, "policy.loss")["step"]) == list(range(1, steps + 1))
            assert_four_kinds(server, run, steps)
    for run, steps in RUNS.items():
        assert count(tmp_path / "service", "steps", run) == steps
        assert count(tmp_path / "service", "attempts", run) == 1


def assert_four_kinds(server: Server, run: str, last: int) -> None:
    """NaN, both infinities and missing are four things, and none of them is a number."""
    told = {
        metric: server.series(run, metric)
        for metric in ("policy.loss", "reward.mean", "reward.min", "ratio.max", "length.mean")
    }
    assert [told[metric]["value"][-1:] for metric in told] == [["NaN"], ["Infinity"], ["-Infinity"], [], [7.5]]
    assert [told[metric]["step"][-1:] for metric in told] == [[last], [last], [last], [], [last]]
    assert told["policy.loss"]["nan"] == told["reward.mean"]["pos_inf"] == told["reward.min"]["neg_inf"] == [last]
    reasons = {metric: series["missing_reason"] for metric, series in told.items()}
    assert reasons.pop("ratio.max") == loops.WHY_MISSING
    assert set(reasons.values()) == {""}
