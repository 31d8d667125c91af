"""Guards in a real trainer: one line each, and the run says what they did."""

from __future__ import annotations

from typing import Any

import pytest

import rlvitals
from rlvitals import guards
from rlvitals.probes.ledger import LEDGER
from tests.client.integrations import tiny
from tests.client.integrations.conftest import MakeTrainer

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(autouse=True)
def _fresh_ledger() -> None:
    LEDGER.take()


def test_each_guard_tells_the_run_what_it_did(make: MakeTrainer) -> None:
    seen: list[Any] = []

    def letters(completions: list[str], **columns: Any) -> list[float]:
        seen.extend(completions)
        return tiny.letters(completions)

    trainer = make(reward=guards.guard_reward(letters, mode="clean"), max_steps=2)
    guards.guard_truncated(trainer, weight=0.5)
    guards.clamp_logits(trainer.model, 0.05)
    reporter = rlvitals.attach(trainer)
    trainer.train()
    step = tiny.steps(reporter)[-1]
    assert 0 < step.values["guard.garbled_share"] <= 1
    assert step.values["guard.replaced_rewards"] == 0
    assert "\ufffd" not in "".join(text.rstrip("\ufffd") for text in seen)
    assert 0 <= step.values["guard.advantage_removed_share"] <= 0.5
    assert step.values["guard.truncated_advantages"] > 0
    assert step.values["guard.clamped_share"] == 1.0


def test_none_of_them_says_anything_where_none_is_switched_on(make: MakeTrainer) -> None:
    trainer = make(max_steps=1)
    reporter = rlvitals.attach(trainer)
    trainer.train()
    assert not [name for name in tiny.steps(reporter)[-1].values if name.startswith("guard.")]
