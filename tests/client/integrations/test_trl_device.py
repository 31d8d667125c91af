"""Sums that stay on a device until the step ends, walked on the CPU: no GPU is needed, none is proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import rlvitals
from rlvitals.integrations import steps
from rlvitals.integrations.ranks import Ranks
from rlvitals.probes.reduction import Reduction
from tests.client.integrations import tiny
from tests.client.integrations.conftest import MakeTrainer

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
CLOCKS = ("progress.step_time", "progress.phase_", "rlvitals.overhead", "rlvitals.spool_bytes", "rlvitals.errors")


def told(trainer: Any) -> list[tuple[int, Mapping[str, float], Mapping[str, str]]]:
    reporter = rlvitals.attach(trainer)
    trainer.train()
    reporter.flush()
    return [
        (
            step.step,
            {name: value for name, value in step.values.items() if not name.startswith(CLOCKS)},
            step.missing,
        )
        for step in tiny.steps(reporter)
    ]


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(step: steps.Step, found: Sequence[Reduction]) -> None:
        step.on_device += found

    monkeypatch.setattr(steps.Step, "add", keep)


def test_a_step_resolved_later_says_the_same(make: MakeTrainer, request: pytest.FixtureRequest) -> None:
    at_once = told(make())
    request.getfixturevalue("on_device")
    assert told(make()) == at_once
    assert [step for step, _, _ in at_once] == [1, 2, 3, 4]


class Together(Ranks):
    """Two ranks of which this is the first; the other has nothing to add."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 2
        self.gathered: list[int] = []

    def gather(self, tally: Any) -> Any:
        self.gathered.append(tally.counts["kl.tokens"])
        return tally

    def agree(self, actions: Any) -> Any:
        return list(actions)

    def agree_to_be_late(self, late: bool) -> bool:
        return late


@pytest.mark.usefixtures("on_device")
def test_with_several_ranks_each_step_is_gathered_one_step_later_and_the_last_at_the_end(
    make: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = Together()
    monkeypatch.setattr(Ranks, "meet", lambda timeout_s: together)
    trainer, gathered_at = make(), []
    reporter = rlvitals.attach(trainer)
    trainer.add_callback(tiny.AtStepEnd(lambda step: gathered_at.append((step, len(together.gathered)))))
    trainer.train()
    assert gathered_at == [(1, 0), (2, 1), (3, 2), (4, 3)]
    assert [step.step for step in tiny.steps(reporter)] == [1, 2, 3, 4]
    assert all(count > 0 for count in together.gathered)
