"""Step time of a real verl job on the CPU with our hooks and without, in turn within one job; both trainers.

With: hooks in the driver and on the workers, probes, journal and the sender, which posts to a sink. Without: the
originals are called. Completions have one length, so that steps have the same work. A toy policy's step is short:
what counts is the milliseconds.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from benchmarks import blocks
from benchmarks.sink import sinking
from tests.trainers import switched
from tests.trainers.environments import HOUSE, python_of
from tests.trainers.switched import Switched
from tests.trainers.verl.job import HERE, JOB_S, TRAINERS, Job

BLOCKS = int(os.environ.get("BENCH_TRAINER_BLOCKS", "16"))
SILENCED = "256:0:-1000"
"""The end of the text is never drawn."""


def main() -> None:
    for trainer in TRAINERS:
        with sinking() as url, tempfile.TemporaryDirectory() as folder:
            _measure(trainer, url, Path(folder))


def _measure(trainer: str, url: str, folder: Path) -> None:
    told = Switched(folder=folder / "switch", turns=blocks.turns(BLOCKS), boundary="log")
    paths = (HERE, switched.HERE, HOUSE / "client")
    job = Job(
        python=python_of("verl-0.9"),
        folder=folder,
        v1=trainer == "v1",
        name=trainer,
        env={
            **told.env,
            "PYTHONPATH": ":".join(map(str, paths)),
            "VERL_USE_EXTERNAL_MODULES": f"{switched.MODULE},cpu_platform",
            "RLVITALS_MODE": "online",
            "RLVITALS_URL": url,
            "RLVITALS_TOKEN": "bench",
            "RLVITALS_DIR": str(folder / "spool"),
            "CPU_ROLLOUT_BIAS": SILENCED,
        },
        overrides=(f"trainer.total_training_steps={len(told.turns) + 1}",),
    )
    code = job.run(2 * JOB_S)
    steps = told.steps()
    if code or len(steps) < len(told.turns):
        raise RuntimeError(f"{trainer}: {len(steps)} of {len(told.turns)} steps, code {code}: {job.last_words()}")
    turned = [on for on, _, _ in steps]
    print(f"verl 0.9.1 {trainer.upper()}, a driver, a worker and an engine of their own")
    print("  " + blocks.describe("wall", [wall for _, wall, _ in steps], turned))
    print("  " + blocks.describe("processes'", [cpu for _, _, cpu in steps], turned))


if __name__ == "__main__":
    main()
