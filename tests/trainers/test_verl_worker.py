"""One engine worker of verl 0.9.1 without Ray: the same bits with us and without, commands, what it tells."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.trainers.verl.job import HERE, JOB_S, RAISING, Job


@pytest.fixture(scope="module")
def python(environment: Callable[[str], Path]) -> Path:
    return environment("verl-0.9")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("verl")


@pytest.fixture(scope="module")
def work(python: Path, folder: Path) -> Callable[[str], Mapping[str, Any]]:
    """One engine worker without Ray, by what is done to it: off, watched or raising."""
    kept: dict[str, Mapping[str, Any]] = {}

    def work(kind: str) -> Mapping[str, Any]:
        if kind not in kept:
            env = {
                "RLVITALS_MODE": "disabled" if kind == "off" else "offline",
                "RLVITALS_RAISE": str(int(kind != "raising")),
                "RLVITALS_DIR": str(folder / f"worker-{kind}-spool"),
                "RAISING_CALLED": str(folder / f"worker-{kind}.called"),
            }
            if kind == "raising":
                env["VERL_USE_EXTERNAL_MODULES"] = RAISING
            job = Job(python=python, folder=folder, env=env, name=f"worker-{kind}")
            job.prepare()
            done = subprocess.run(
                [str(python), str(HERE / "worker.py"), str(folder), kind],
                env=job.environment(),
                capture_output=True,
                text=True,
                timeout=JOB_S,
                check=False,
            )
            assert done.returncode == 0, done.stderr[-3000:]
            kept[kind] = json.loads(done.stdout.splitlines()[-1])
        return kept[kind]

    return work


@pytest.mark.parametrize("kind", ["watched", "raising"])
def test_a_workers_weights_are_the_same_with_us_and_without(
    work: Callable[[str], Mapping[str, Any]], kind: str, folder: Path
) -> None:
    assert work(kind)["digests"] == work("off")["digests"]
    assert len(set(work("off")["digests"])) == 3
    if kind == "raising":
        called = set((folder / "worker-raising.called").read_text().split())
        assert {"workers._loss_computed", "workers._step_begins", "workers._step_done"} <= called


def test_a_worker_tells_each_update_once_with_token_ids(work: Callable[[str], Mapping[str, Any]]) -> None:
    for told in work("watched")["told"]:
        assert told["hooks"] == {"loss": 2, "optimizer": 1}
        assert told["values"]["ratio.max"] > told["values"]["ratio.min"]
        assert told["values"]["gradient.skipped_steps"] == 0
        assert isinstance(told["token"], int)


def test_a_worker_takes_a_coefficient_and_a_rate_and_finds_poison(
    work: Callable[[str], Mapping[str, Any]],
) -> None:
    told = work("watched")["steered"]
    # what it says it has, and what the loss of its next update logs
    assert told["kl"] == [0.5, 0.5]
    assert told["rate"] == [0.01, 0.005]
    assert told["poisoned"] == [0, 1]
