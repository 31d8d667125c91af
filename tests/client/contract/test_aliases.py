"""What trainers' own names mean here."""

from __future__ import annotations

import pytest

from rlvitals.contract.aliases import ALIASES, Match, resolve
from rlvitals.contract.metrics import BY_NAME


def test_every_alias_leads_to_a_registered_metric() -> None:
    assert {alias.metric for alias in ALIASES.values()} <= set(BY_NAME)


@pytest.mark.parametrize(
    ("name", "metric", "match"),
    [
        ("grad_norm", "gradient.norm", Match.EXACT),
        ("actor/grad_norm", "gradient.norm", Match.EXACT),
        ("critic/vf_explained_var", "critic.explained_variance", Match.EXACT),
        ("actor/pg_clipfrac", "ratio.clip_share", Match.EXACT),
        ("train/sampling/importance_sampling_ratio/mean", "correction.weight_mean", Match.SUFFIX),
        ("train/completions/clipped_ratio", "length.truncation_rate", Match.SUFFIX),
        ("train/kl", "kl.k3", Match.SUFFIX),
        ("Training Loss", "policy.loss", Match.WORDS),
        ("Grad-Norm", "gradient.norm", Match.WORDS),
        ("response length (mean)", "length.mean", Match.WORDS),
    ],
)
def test_names_are_found_exactly_then_by_suffix_then_by_words(name: str, metric: str, match: Match) -> None:
    found = resolve(name)
    assert found is not None
    assert (found.metric, found.match) == (metric, match)


@pytest.mark.parametrize(
    "name",
    [
        "rewards/accuracy_reward",
        "critic/vpred_mean",
        "actor/pg_clipfrac_lower",
        "val-core/acc/mean@1",
        "objective/kl",
        "my_loss",
        "",
    ],
)
def test_a_name_of_another_quantity_stays_the_users_own(name: str) -> None:
    assert resolve(name) is None


def test_a_differing_definition_is_told() -> None:
    found = resolve("actor/kl_loss")
    assert found is not None
    assert "clamps" in found.note
