"""Step time of a real OpenRLHF job on the CPU, with our hooks and without, in turn within one job.

With: hooks in the controller and on the ranks, probes, journal and the sender, which posts to a sink. Without: the
originals are called. A toy policy's step is short: what counts is the milliseconds.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from benchmarks import blocks
from benchmarks.sink import sinking
from tests.client.integrations.tiny import save_policy
from tests.trainers import switched
from tests.trainers.environments import HOUSE, python_of
from tests.trainers.extensions import compiled
from tests.trainers.openrlhf.job import HERE, Job, cluster
from tests.trainers.switched import Switched

BLOCKS = int(os.environ.get("BENCH_TRAINER_BLOCKS", "16"))
JOB_S = 1800.0


def main() -> None:
    python = python_of("openrlhf-0.11")
    compiled(python, "FusedAdamBuilder")
    with sinking() as url, tempfile.TemporaryDirectory() as folder, cluster(python) as address:
        home = Path(folder)
        told = Switched(folder=home / "switch", turns=blocks.turns(BLOCKS), boundary="save_logs_and_checkpoints")
        paths = ":".join(map(str, (HERE / "standins", HERE, switched.HERE, HOUSE / "client")))
        runtime = {
            "worker_process_setup_hook": f"{switched.MODULE}.install",
            "env_vars": {**told.env, "PYTHONPATH": paths},
        }
        job = Job(
            python=python,
            address=address,
            policy=save_policy(home / "policy"),
            folder=home / "job",
            run="bench",
            told={
                **told.env,
                "PYTHONPATH": paths,
                "RLVITALS_MODE": "online",
                "RLVITALS_URL": url,
                "RLVITALS_TOKEN": "bench",
                "RAY_JOB_CONFIG_JSON_ENV_VAR": json.dumps({"runtime_env": runtime}),
            },
        )
        with job.running(("--train.num_episodes", str(len(told.turns) // 4 + 2))) as process:
            code = process.wait(JOB_S)
        steps = told.steps()[: len(told.turns)]
        if code or len(steps) < len(told.turns):
            raise RuntimeError(f"{len(steps)} of {len(told.turns)} steps, code {code}: {job.words()}")
    turned = [on for on, _, _ in steps]
    print("OpenRLHF 0.11.2, a controller, two actor ranks, a reference and an engine of their own")
    print("  " + blocks.describe("wall", [wall for _, wall, _ in steps], turned))
    print("  " + blocks.describe("processes'", [cpu for _, _, cpu in steps], turned))


if __name__ == "__main__":
    main()
