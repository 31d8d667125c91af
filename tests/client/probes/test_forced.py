"""Tokens that the policy did not choose and the loss trains on: counted and named, or suspected."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rlvitals.probes import reduction
from rlvitals.probes.finish.policy import FORCED
from rlvitals.probes.forced import measure_forced, tally_forced
from rlvitals.probes.gradients import tally_loss_tokens
from rlvitals.probes.kl import tally_kl
from rlvitals.probes.reduction import Pending
from rlvitals.probes.tally import Tally

EOS, OBSERVATION = 151_645, 30
IDS = torch.tensor([[5, 6, EOS, OBSERVATION, 7, EOS], [8, EOS, OBSERVATION, 9, EOS, 0]])
CHOSEN = torch.tensor([[1, 1, 0, 0, 1, 1], [1, 0, 0, 1, 1, 0]])
# the observations are masked, the end of turn before them is not
MASK = torch.tensor([[1, 1, 1, 0, 1, 1], [1, 1, 0, 1, 1, 0]])


def test_a_forced_token_that_the_mask_does_not_cover_is_named_with_its_place() -> None:
    measured = tally_forced(CHOSEN, MASK, IDS, sample_offset=4).measured()
    assert measured.values == {FORCED: 2.0}
    seen = measured.extremes[FORCED]
    assert (seen.value, seen.token_id, seen.sample, seen.position) == (2.0, EOS, 4, 2)
    assert seen.masked is False, "the loss mask does not cover it"


@pytest.mark.parametrize("mask", [CHOSEN, MASK * 0, CHOSEN.bool()])
def test_where_the_mask_hides_all_that_others_wrote_the_count_is_a_true_zero(mask: Tensor) -> None:
    measured = tally_forced(CHOSEN, mask, IDS).measured()
    assert measured.values == {FORCED: 0.0}
    assert not measured.extremes


@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (3, 0)])
def test_a_batch_without_tokens_has_none(shape: tuple[int, int]) -> None:
    zeros = torch.zeros(shape, dtype=torch.long)
    assert tally_forced(zeros, zeros, zeros).measured().values == {FORCED: 0.0}


def test_the_id_that_is_forced_most_often_is_named_even_if_another_comes_first() -> None:
    mask = MASK.clone()
    mask[0, 3] = mask[1, 2] = 1
    ids = IDS.clone()
    ids[0, 2] = 17
    measured = tally_forced(CHOSEN, mask, ids).measured()
    assert measured.values[FORCED] == 4
    seen = measured.extremes[FORCED]
    assert (seen.token_id, seen.position, seen.masked) == (OBSERVATION, None, False)


@pytest.mark.parametrize("left", [0, 3])
def test_padding_on_either_side_and_several_turns_change_nothing(left: int) -> None:
    pad = torch.zeros(2, left, dtype=torch.long)
    padded = [torch.cat([pad, x, pad], 1) for x in (CHOSEN, MASK, IDS)]
    measured = tally_forced(*padded).measured()
    assert measured.values == {FORCED: 2.0}
    assert measured.extremes[FORCED].position == 2 + left


@settings(max_examples=30)
@given(st.integers(0, 1000), st.integers(0, 8))
def test_micro_batches_add_up_to_the_batch(seed: int, cut: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    chosen, mask, ids = (torch.randint(0, high, (8, 5), generator=draw) for high in (2, 2, 4))
    whole = tally_forced(chosen, mask, ids)
    parts = [
        tally_forced(chosen[a:b], mask[a:b], ids[a:b], sample_offset=a) for a, b in ((cut, 8), (0, cut)) if b > a
    ]
    assert sum(parts, Tally.zero()) == whole


def test_blocks_and_the_form_that_never_waits_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tally_forced(CHOSEN, MASK, IDS).measured()
    monkeypatch.setattr(reduction, "CHUNK", 1)
    assert tally_forced(CHOSEN, MASK, IDS).measured() == whole
    monkeypatch.setattr(reduction, "on_host", lambda tensor: False)
    assert Pending([measure_forced(CHOSEN, MASK, IDS)]).tally().measured() == whole


def test_where_nobody_says_who_wrote_a_token_it_is_missing_and_never_zero() -> None:
    for tally in (tally_forced(None, MASK, IDS), tally_loss_tokens(MASK)):
        measured = tally.measured()
        assert FORCED not in measured.values
        assert "nobody says which tokens the policy chose" in measured.missing[FORCED]


def test_the_reason_then_names_the_id_that_owns_the_kl_gradient() -> None:
    logp = torch.full((2, 6), -1.0)
    ref = logp.clone()
    logp[0, 2], logp[1, 1] = -9.0, -8.0
    tally = tally_loss_tokens(MASK) + tally_kl(logp, ref, MASK, torch.ones(1, 1), coef=0.01, ids=IDS)
    reason = tally.measured().missing[FORCED]
    assert f"token id {EOS} owns 100% of the squared KL gradient and the loss mask does not cover it" in reason
    healthy = tally_loss_tokens(MASK) + tally_kl(ref - 0.1, ref, MASK, torch.ones(1, 1), coef=0.01, ids=IDS)
    assert "token id" not in healthy.measured().missing[FORCED]


def test_ids_that_are_floats_are_refused() -> None:
    with pytest.raises(ValueError, match="ids: expected integers"):
        tally_forced(CHOSEN, MASK, IDS.float())
    with pytest.raises(ValueError, match=r"mask: expected \(2, 6\)"):
        tally_forced(CHOSEN, MASK[:1], IDS)
