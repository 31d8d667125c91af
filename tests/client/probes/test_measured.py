"""All that the probes say is in the registry, and nothing is both measured and missing."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from rlvitals.contract.metrics import BY_NAME, METRICS, Family
from rlvitals.probes import kl, ratios
from rlvitals.probes.components import tally_components
from rlvitals.probes.finish import FAMILIES
from rlvitals.probes.finish.policy import OPTIONAL
from rlvitals.probes.gradients import tally_gradient_norm, tally_loss_tokens, tally_policy_pull
from rlvitals.probes.groups import tally_advantages, tally_rewards
from rlvitals.probes.lengths import tally_lengths
from rlvitals.probes.measured import Measured
from rlvitals.probes.nonfinite import tally_nonfinite
from rlvitals.probes.reward_range import RewardRange
from rlvitals.probes.tally import Tally
from rlvitals.probes.text import pack, tally_text
from rlvitals.probes.tokens import TokenTable
from tests.client.probes.numerics import everything_numeric
from tests.client.probes.test_tokens import byte_fallback
from tests.client.probes.written import everything_written

# what the probes answer for; the others of these families are read from the trainer
OURS = (Family.TEXT, Family.LENGTH, Family.REWARD, Family.KL, Family.RATIO, Family.GRADIENT, Family.NUMERICS)
THE_TRAINERS = {"kl.coef"}


def everything(mask_value: int) -> Measured:
    shape = (4, 6)
    logp, mask = -torch.rand(shape, generator=torch.Generator().manual_seed(0)), torch.full(shape, mask_value)
    ref, ids, one = logp + 0.1, torch.arange(24).reshape(shape), torch.ones(1, 1)
    advantages = torch.tensor([1.0, -1.0, 0.5, -0.5])
    ids_text, lengths = pack([[200, 257], [2, 3]])
    tally: Tally = sum(
        [
            kl.tally_kl(logp, ref, mask, one, coef=0.1, ids=ids),
            tally_policy_pull(logp, None, advantages, mask, one),
            ratios.tally_ratios(logp, ref, mask, advantages, ids, eps_low=0.2, eps_high=0.2),
            ratios.tally_rollout(logp, ref, mask),
            tally_nonfinite(loss=1.0, logp=logp, ref=ref, old=ref, advantages=advantages, mask=mask),
            tally_gradient_norm(1.0),
            tally_loss_tokens(mask),
            tally_rewards([1.0, 2.0, 3.0, 3.0], 2, reward_range=RewardRange.of(0, 3)),
            tally_components([[1.0], [2.0]], ["right"]),
            tally_advantages(advantages, equal=[True, True, False, False]),
            tally_lengths([3, 4], [1, 2], {2}, 4),
            tally_text(TokenTable.from_tokenizer(byte_fallback(), 300), ids_text, lengths * mask_value)[0],
            everything_written(mask_value),
            everything_numeric(mask_value),
        ],
        Tally.zero(),
    )
    return tally.measured()


@pytest.mark.parametrize("mask_value", [0, 1])
def test_every_metric_of_the_probes_is_measured_or_missing_and_never_both(mask_value: int) -> None:
    measured = everything(mask_value)
    expected = {m.name for m in METRICS if m.family in OURS} - THE_TRAINERS | {"policy.loss_tokens"}
    absent = expected - measured.values.keys() - measured.missing.keys()
    assert absent <= ({"kl.pull_ratio"} if not mask_value else set())
    assert not measured.values.keys() & measured.missing.keys()
    assert bool(measured.missing.keys() - OPTIONAL.keys()) == (not mask_value)


@pytest.mark.parametrize("mask_value", [0, 1])
def test_no_name_is_invented(mask_value: int) -> None:
    measured = everything(mask_value)
    for names in (measured.values, measured.missing, measured.extremes, measured.histograms):
        ours = {name for name in names if not name.startswith("rewards/")}  # the user's own reward functions
        assert ours <= set(BY_NAME)


def test_the_lists_of_names_are_registered() -> None:
    assert set(kl.METRICS) | set(ratios.METRICS) <= set(BY_NAME)


def test_extremes_carry_the_value_of_their_metric() -> None:
    measured = everything(1)
    witnessed = {name for family in FAMILIES for name in family.witnesses} | {"text.never_trained_rate"}
    for name, extreme in measured.extremes.items():
        if name not in witnessed:
            assert extreme.value == measured.values[name]


def test_the_text_probes_run_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from rlvitals.probes import groups, lengths, tally, text, tokens\n"
        "assert text.pack([[1], [2, 3]])[1].tolist() == [1, 2]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
