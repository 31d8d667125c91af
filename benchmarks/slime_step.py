"""Step time of slime's loss in a loop of its plug-in contracts on the CPU, our hooks on and off in turn.

Loss and samples are slime's own, the driver's calls and Megatron stand in; the policy has 4 million parameters and
a batch of a thousand tokens. Rollout and training are one process here, so that both of our sides cost the step.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from benchmarks import blocks
from benchmarks.sink import sinking
from tests.client.integrations.tiny import save_policy
from tests.trainers import switched
from tests.trainers.environments import HOUSE, python_of
from tests.trainers.slime.source import checkout
from tests.trainers.switched import Switched

BLOCKS = int(os.environ.get("BENCH_TRAINER_BLOCKS", "40"))
LOOP_S = 1800.0


def main() -> None:
    python = python_of("slime")
    with sinking() as url, tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        told = Switched(folder=home / "switch", turns=blocks.turns(BLOCKS), boundary="train_one_step")
        env = {
            **os.environ,
            **told.env,
            "PYTHONPATH": ":".join(map(str, (switched.HERE, HOUSE / "client", HOUSE))),
            "SLIME_CHECKOUT": str(checkout()),
            "LOOP_FOLDER": str(home),
            "LOOP_POLICY": str(save_policy(home / "policy")),
            "RLVITALS_MODE": "online",
            "RLVITALS_URL": url,
            "RLVITALS_TOKEN": "bench",
            "RLVITALS_RUN_ID": "bench",
            "RLVITALS_ATTEMPT": "a1",
            "RLVITALS_DIR": str(home / "spool"),
            "TORCHDYNAMO_DISABLE": "1",
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
        }
        command = [str(python), "-m", "tests.trainers.slime.loop"]
        done = subprocess.run(
            command, env=env, cwd=HOUSE, capture_output=True, text=True, timeout=LOOP_S, check=False
        )
        steps = told.steps()[: len(told.turns)]
        if done.returncode or len(steps) < len(told.turns):
            raise RuntimeError(f"{len(steps)} of {len(told.turns)} steps: {done.stderr[-3000:]}")
    turned = [on for on, _, _ in steps]
    print("slime, its loss and its samples in one process")
    print("  " + blocks.describe("wall", [wall for _, wall, _ in steps], turned))
    print("  " + blocks.describe("processes'", [cpu for _, _, cpu in steps], turned))


if __name__ == "__main__":
    main()
