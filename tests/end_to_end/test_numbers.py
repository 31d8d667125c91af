"""A number's way from the trainer's tensor to the REST answer, for numbers that are none."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import rlvitals
from tests.end_to_end.conftest import MakeTrainer
from tests.end_to_end.server import Server, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def test_losses_that_trl_logs_as_finite_arrive_as_what_they_were(make: MakeTrainer, server: Server) -> None:
    trainer = make(max_steps=6, logging_steps=1)
    original, planted = trainer.compute_loss, {2: math.nan, 3: math.inf, 4: -math.inf}

    def poisoned(*args: Any, **kwargs: Any) -> torch.Tensor:
        loss: torch.Tensor = original(*args, **kwargs)
        return loss + planted.get(trainer.state.global_step + 1, 0.0)  # the gradient stays finite

    trainer.compute_loss = poisoned
    reporter = rlvitals.attach(trainer, run="numbers")
    trainer.train()
    assert reporter.flush(60)
    logged = {entry["step"]: entry["loss"] for entry in trainer.state.log_history if "loss" in entry}
    assert all(math.isfinite(logged[step]) for step in planted), "the trainer's own log hides them"

    wait_until(lambda: server.last_step("numbers") == 6, "the last step to arrive")
    found = server.series("numbers", "policy.loss")
    told = dict(zip(found["step"], found["value"], strict=True))
    assert [told[step] for step in (2, 3, 4)] == ["NaN", "Infinity", "-Infinity"]
    assert (found["nan"], found["pos_inf"], found["neg_inf"]) == ([2], [3], [4])
    assert all(isinstance(told[step], float) for step in (1, 5, 6))
    missing = server.series("numbers", "ratio.max")
    assert missing["step"] == []
    assert "1 by construction" in missing["missing_reason"]
    wait_until(
        lambda: any(a["rule"] == "nonfinite" for a in server.ask("/alerts?run=numbers")["items"]),
        "the nonfinite alert",
    )
