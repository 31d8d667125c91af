"""Tensors that no probe can measure: training ends with the same bits, and our error is counted, not raised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import rlvitals
from rlvitals import guard
from rlvitals.integrations.trl import facts
from rlvitals.probes.arguments import DeviceError, DtypeError, ProbeArgumentError, ShapeError
from tests.client.integrations import tiny
from tests.client.integrations.conftest import MakeTrainer

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
# the sampler's log-probs, which the loss reads with vLLM only
UNUSED = "sampling_per_token_logps"
WRONG: dict[str, tuple[type[ProbeArgumentError], Callable[[Tensor], Tensor]]] = {
    "too narrow": (ShapeError, lambda ids: torch.zeros(ids.shape[0], ids.shape[1] - 1)),
    "a number a row": (ShapeError, lambda ids: torch.zeros(ids.shape[0])),
    "integers": (DtypeError, torch.zeros_like),
    "on another device": (DeviceError, lambda ids: torch.zeros(ids.shape, device="meta")),
}


@pytest.fixture
def caught(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The types of what the guard kept from the trainer, as in production."""
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    seen: list[str] = []
    tell = guard.caught

    def keep(error: Exception, what: str) -> None:
        seen.append(type(error).__name__)
        tell(error, what)

    monkeypatch.setattr(guard, "caught", keep)
    return seen


def spoilt(trainer: Any, wrong: Callable[[Tensor], Tensor]) -> Any:
    """A trainer that shows a tensor of the wrong kind beside those that it trains on."""
    generate = trainer._generate_and_score_completions

    def generate_and_spoil(*args: Any, **kwargs: Any) -> dict[str, Any]:
        result = generate(*args, **kwargs)
        return {**result, UNUSED: wrong(result["completion_ids"])}

    trainer._generate_and_score_completions = generate_and_spoil
    return trainer


@pytest.mark.parametrize("kind", WRONG)
def test_tensors_of_the_wrong_kind_never_reach_the_training_loop(
    make: MakeTrainer, caught: list[str], kind: str
) -> None:
    error, wrong = WRONG[kind]
    plain = make()
    plain.train()
    before = guard.errors
    watched = spoilt(make(), wrong)
    reporter = rlvitals.attach(watched)
    watched.train()
    assert tiny.weights_hash(watched) == tiny.weights_hash(plain)
    assert caught == [error.__name__] * 8, "the census of it and its ratios, at each step"
    steps = tiny.steps(reporter)
    assert [step.step for step in steps] == [1, 2, 3, 4]
    assert steps[-1].values["rlvitals.errors"] == guard.errors == before + 8
    # what can be measured still is
    assert {"kl.k3", "policy.entropy", "ratio.reference_max"} <= set(steps[-1].values)
    assert "length.mean" in steps[-1].values
    assert "text.invalid_utf8_per_1k" in steps[-1].values


def test_a_tokenizer_without_a_vocabulary_is_a_reason_and_no_error(
    make: MakeTrainer, caught: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = make(max_steps=2)
    plain.train()
    monkeypatch.setattr(facts, "tokenizer_of", lambda _: object())
    watched = make(max_steps=2)
    reporter = rlvitals.attach(watched, texts=False)
    watched.train()
    assert tiny.weights_hash(watched) == tiny.weights_hash(plain)
    assert caught == []
    last = tiny.steps(reporter)[-1]
    assert last.missing["text.invalid_utf8_per_1k"].startswith("not measured: tokenizer: expected ")
    assert "length.mean" in last.values
