"""``report_to="rlvitals"`` where `import rlvitals` comes before transformers: prints what the run was told.

``python -m tests.trainers.trl_versions.named FOLDER``
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import rlvitals

before = "transformers" in sys.modules

import transformers  # noqa: E402 - the order is what is looked at

from rlvitals.integrations.trl.reporting import RLVitalsCallback  # noqa: E402
from tests.client.integrations import tiny  # noqa: E402


def main(folder: Path) -> None:
    warnings.simplefilter("ignore")
    trainer = tiny.make_trainer(
        tiny.save_policy(folder / "policy"), folder / "output", report_to="rlvitals", logging_steps=1
    )
    trainer.train()
    callback = next(c for c in trainer.callback_handler.callbacks if isinstance(c, RLVitalsCallback))
    assert callback.reporter is not None
    steps = tiny.steps(callback.reporter)
    told = {
        "transformers": transformers.__version__,
        "before": before,
        "steps": [step.step for step in steps],
        "rewards": [step.values["reward.mean"] for step in steps],
        "logged": [entry["reward"] for entry in trainer.state.log_history if "reward" in entry],
        "run": callback.reporter.run.id,
        "public": rlvitals.RLVitalsCallback is RLVitalsCallback,
    }
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
