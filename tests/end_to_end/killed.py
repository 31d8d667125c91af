"""A trainer that kills itself with ``kill -9`` right after its step 3 was reported; started by test_kills.py."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from pathlib import Path

import rlvitals
from tests.client.integrations import tiny

LAST_STEP = 3


def main(policy: Path, output: Path, run: str) -> None:
    warnings.simplefilter("ignore")
    trainer = tiny.make_trainer(policy, output, max_steps=50)
    rlvitals.attach(trainer, run=run)
    trainer.add_callback(
        tiny.AtStepEnd(lambda step: os.kill(os.getpid(), signal.SIGKILL) if step == LAST_STEP else None)
    )
    trainer.train()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
