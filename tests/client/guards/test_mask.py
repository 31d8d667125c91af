"""A turn end that the rollout appended must not be trained on; what cannot be told is refused, not passed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rlvitals import guard, guards
from rlvitals.probes.arguments import ProbeArgumentError
from tests.client.guards.conftest import Taken

END = 7
IDS = torch.tensor([[1, 2, END, 3], [1, END, 2, END]])
CHOSEN = torch.tensor([[1, 1, 0, 1], [1, 1, 1, 1]])


def test_a_mask_that_covers_what_was_forced_passes(taken: Taken) -> None:
    assert guards.check_loss_mask(IDS, CHOSEN, chosen=CHOSEN) is None
    assert taken().values["guard.forced_loss_tokens"] == 0.0


def test_a_forced_token_in_the_loss_is_refused_by_name(taken: Taken) -> None:
    with pytest.raises(guards.ForcedTokensError, match=r"1 tokens.*id 7 at position 2 of sample 0") as caught:
        guards.check_loss_mask(IDS, torch.ones(2, 4), chosen=CHOSEN)
    found = caught.value.found
    assert (found.count, found.token_id, found.sample, found.position) == (1, END, 0, 2)
    measured = taken()
    assert measured.values["guard.forced_loss_tokens"] == 1.0
    extreme = measured.extremes["guard.forced_loss_tokens"]
    assert (extreme.token_id, extreme.position, extreme.sample, extreme.masked) == (END, 2, 0, False)


def test_it_may_only_report(taken: Taken) -> None:
    found = guards.check_loss_mask(IDS.numpy(), np.ones((2, 4)), chosen=CHOSEN.numpy(), raises=False)
    assert found is not None
    assert found.count == 1
    assert taken().values["guard.forced_loss_tokens"] == 1.0


@pytest.mark.parametrize(
    ("value", "forced"), [(-21.0, True), (-19.0, False), (-math.inf, True), (math.nan, False)]
)
def test_without_anybodys_word_a_turn_end_that_was_hardly_sampled_is_taken_for_forced(
    value: float, forced: bool
) -> None:
    logp = torch.full((2, 4), -30.0)
    logp[IDS == END] = -0.1
    logp[0, 2] = value
    found = guards.check_loss_mask(IDS, torch.ones(2, 4), logp=logp, turn_ends=[END], raises=False)
    assert (found is not None) is forced


def test_a_check_that_cannot_tell_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    for given in (
        {},
        {"logp": torch.zeros(2, 4)},
        {"chosen": CHOSEN[:1]},
        {"logp": torch.zeros(1), "turn_ends": [1]},
    ):
        with pytest.raises(ProbeArgumentError):
            guards.check_loss_mask(IDS, torch.ones(2, 4), **given)  # type: ignore[arg-type]
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    before = guard.errors
    assert guards.check_loss_mask(IDS, torch.ones(2, 4), raises=False) is None
    assert guard.errors == before + 1
