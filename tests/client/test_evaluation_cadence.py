"""Evaluation metrics from a log and from a loop: told beside the steps, never taken for steps with holes."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlvitals.contract.evaluation import is_evaluation
from rlvitals.reporter import Reporter
from rlvitals.settings import Mode
from rlvitals.spool import journals
from rlvitals.tail import Tail
from tests.client.conftest import MakeReporter
from tests.client.test_tail import steps

TRL = """{'loss': 0.5, 'reward': 0.1, 'grad_norm': 1.0, 'epoch': 0.1}
{'loss': 0.4, 'reward': 0.2, 'grad_norm': 1.0, 'epoch': 0.2}
{'eval_loss': 0.9, 'eval_reward': 0.3, 'epoch': 0.2}
{'loss': 0.3, 'reward': 0.3, 'grad_norm': 1.0, 'epoch': 0.3}
"""
SLIME = """rollout 0: {'rollout/raw_reward': 0.1, 'rollout/response_len/mean': 9.0}
step 0: {'train/loss': 0.5, 'train/grad_norm': 1.0}
rollout 1: {'rollout/raw_reward': 0.2, 'rollout/response_len/mean': 9.0}
eval 1: {'aime': 0.25, 'response_len/mean': 77.0}
step 1: {'train/loss': 0.4, 'train/grad_norm': 1.0}
"""


@pytest.fixture
def reporter(make_reporter: MakeReporter) -> Reporter:
    return make_reporter(mode=Mode.OFFLINE)


@pytest.mark.parametrize(("log", "first"), [(TRL, 1), (SLIME, 0)])
def test_a_log_with_evaluations_is_one_attempt_with_whole_steps(
    reporter: Reporter, tmp_path: Path, log: str, first: int
) -> None:
    path = tmp_path / "run.log"
    path.write_text(log)
    tail = Tail([path], reporter)
    tail.poll()
    tail.finish()
    assert len(list(journals(reporter.settings.spool))) == 1
    found = steps(reporter.settings.spool)
    trained = [step for step in found if not is_evaluation(step.values)]
    assert [step.step for step in trained] == list(range(first, first + len(trained)))
    assert all("reward.mean" in step.values for step in trained)
    (evaluated,) = [step for step in found if is_evaluation(step.values)]
    own = {name for name in evaluated.values if name.startswith("rlvitals.")}
    assert {name for name in evaluated.values if not name.startswith("eval")} - own <= {"epoch"}
    assert "length.mean" not in evaluated.values
