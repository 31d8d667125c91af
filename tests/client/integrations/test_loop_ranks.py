"""A hand-written loop on two real ranks over gloo, and one prepared by accelerate."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rlvitals
from tests.client.integrations import grpo, loop_rank, tiny

DEADLINE_S = 120.0


@pytest.mark.slow
def test_two_ranks_report_as_one_and_stop_at_the_same_step(tmp_path: Path) -> None:
    first, second = sorted(_both(tmp_path), key=lambda told: int(told["rank"]))
    assert (first["stopped"], second["stopped"]) == (True, True)
    assert second["values"] == []
    assert len(first["values"]) == 2
    for step, values in enumerate(first["values"]):
        parts = [rank["seen"][step * grpo.MICRO : (step + 1) * grpo.MICRO] for rank in (first, second)]
        tokens = [k3 for rank in parts for part in rank for k3 in part]
        assert values["policy.loss_tokens"] == len(tokens)
        assert values["kl.k3"] == pytest.approx(sum(tokens) / len(tokens), abs=1e-6)
        assert values["length.completions"] == 2 * grpo.PROMPTS * grpo.GROUP
        assert values["reward.group_size"] == grpo.GROUP


def test_a_loop_prepared_by_accelerate_is_the_same_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accelerate = pytest.importorskip("accelerate", reason="NO TEST WITH ACCELERATE: it is not installed")
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    accelerator = accelerate.Accelerator(cpu=True)

    def made() -> grpo.Loop:
        return grpo.Loop(prepare=accelerator.prepare, backward=accelerator.backward)

    plain = made()
    plain.train()
    weights = plain.weights()
    watched = made()
    with rlvitals.run(project="p", **watched.facts()) as vitals:
        watched.train(vitals)
    assert watched.weights() == weights
    step = tiny.steps(vitals.reporter)[-1]
    assert step.values["policy.learning_rate"] == 1e-2
    assert step.values["gradient.update_ratio"] > 0


def _both(folder: Path) -> list[dict[str, Any]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    common |= {"RLVITALS_MODE": "offline", "RLVITALS_RAISE": "1", "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", loop_rank.__name__],
            env={**common, "RANK": str(n), "LOCAL_RANK": str(n), "RLVITALS_DIR": str(folder / f"spool-{n}")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(2)
    ]
    told = []
    try:
        for process in processes:
            out, err = process.communicate(timeout=DEADLINE_S)
            assert process.returncode == 0, err[-3000:]
            told.append(json.loads(out.splitlines()[-1]))
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return told
