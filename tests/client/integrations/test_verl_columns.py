"""verl's columns, settings and aggregations, read as they are; and what its workers measure in the loss."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rlvitals.integrations.verl import workers
from rlvitals.integrations.verl.columns import read_batch
from rlvitals.integrations.verl.loss_pieces import pieces
from rlvitals.integrations.verl.settings import Settings
from rlvitals.integrations.verl.signals import embedding_rows, stop_ids
from rlvitals.integrations.verl.weights import token_weights
from rlvitals.probes.tally import Tally
from tests.client.integrations.verl_shaped import DataProto, columns, completions, config, jagged

MASK = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]], dtype=torch.bool)


# -- batches -------------------------------------------------------------------------------------------


def test_jagged_columns_become_rows_of_one_width_without_what_fills_the_batch_up() -> None:
    batch = read_batch(columns() | {"is_padding": [False] * 6 + [True]})
    assert (batch.size, batch.width) == (6, 6)
    assert batch.lengths.tolist() == [len(row) for row in completions()]
    assert batch.groups is not None
    assert batch.groups.tolist() == [0, 0, 1, 1, 2, 2]
    assert batch.prompts is not None
    assert list(batch.prompts[0]) == [2, 3]


def test_padded_columns_of_older_trainers_say_the_same() -> None:
    told = columns() | {"is_padding": [False] * 6 + [True]}
    width = 8
    padded: dict[str, Any] = {
        name: torch.nn.functional.pad(torch.nested.to_padded_tensor(value, 0), (0, width - 6))
        for name, value in told.items()
        if isinstance(value, Tensor) and name != "prompts"
    }
    prompts = [row.tolist() for row in told["prompts"].unbind()]
    padded["prompts"] = torch.tensor([[0] * (3 - len(row)) + row for row in prompts])
    seen = torch.cat(
        [
            torch.tensor([[0] * (3 - len(row)) + [1] * len(row) for row in prompts]),
            torch.arange(width)[None, :] < told["responses"].offsets().diff()[:, None],
        ],
        dim=1,
    )
    padded |= {
        "attention_mask": seen,
        "uid": np.array(told["uid"], dtype=object),
        "is_padding": told["is_padding"],
    }
    here, there = read_batch(padded), read_batch(told)
    assert here.lengths.tolist() == there.lengths.tolist()
    assert [list(row) for row in here.prompts or ()] == [list(row) for row in there.prompts or ()]
    for name in ("old", "ref", "rollout", "rewards"):
        one, other = getattr(here, name), getattr(there, name)
        assert torch.allclose(one[:, :6] if one.dim() == 2 else one, other)


def test_rows_that_verl_dealt_out_by_length_stand_by_group_again() -> None:
    told, order = columns(), [6, 4, 0, 2, 5, 1, 3]
    mixed = {name: [value[row] for row in order] for name, value in told.items() if name == "uid"}
    for name, value in told.items():
        if isinstance(value, Tensor):
            mixed[name] = torch.nested.nested_tensor([value[row] for row in order], layout=torch.jagged)
    batch = read_batch(mixed | {"is_padding": [row == 6 for row in order]})
    assert batch.groups is not None
    assert batch.groups.tolist() == [0, 0, 1, 1, 2, 2]
    rows = [ids[:length].tolist() for ids, length in zip(batch.ids, batch.lengths, strict=True)]
    assert rows == [told["responses"][row].tolist() for row in (4, 5, 0, 1, 2, 3)]
    assert batch.prompts is not None
    assert list(batch.prompts[0]) == told["prompts"][4].tolist()


def test_a_column_that_cannot_be_read_counts_as_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    batch = read_batch(columns(ref_log_prob="no tensor"))
    assert batch.ref is None
    assert batch.old is not None


def test_advantages_that_all_tokens_share_are_one_a_completion() -> None:
    batch = read_batch(columns())
    assert batch.advantage is not None
    assert batch.advantage.tolist() == [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0]
    rows = [row.tolist() for row in columns()["advantages"].unbind()]
    rows[1][2] = 0.5
    by_token = read_batch(columns(advantages=jagged(rows))).advantage
    assert by_token is not None
    assert by_token.dim() == 2


# -- settings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "version", "estimator", "clamp"),
    [
        ("low_var_kl", "0.9.1", "k3", "before and after"),
        ("low_var_kl", "0.4.0", "k3", "after"),
        ("k3+", "0.9.1", "k3+", "before and after"),
        ("kl", "0.9.1", "k1", "none"),
        ("mse", "0.9.1", "k2", "none"),
        ("abs", "0.9.1", "abs", "none"),
    ],
)
def test_kl_estimators_have_the_names_and_clamps_of_their_release(
    name: str, version: str, estimator: str, clamp: str
) -> None:
    term = Settings(config(actor_rollout_ref__actor__kl_loss_type=name), version).kl
    assert term is not None
    assert (term.place, term.estimator, term.clamp) == ("loss", estimator, clamp)


def test_an_adaptive_controller_has_a_target_and_a_fixed_one_none() -> None:
    base = {"actor_rollout_ref__actor__use_kl_loss": False, "algorithm__use_kl_in_reward": True}
    control = {"kl_coef": 0.1, "target_kl": 0.2, "type": "adaptive"}
    assert Settings(config(**base, algorithm__kl_ctrl=control), "0.9.1").named()["kl_target"] == 0.2
    fixed = Settings(config(**base, algorithm__kl_ctrl=control | {"type": "fixed"}), "0.9.1").named()
    assert "kl_target" not in fixed
    assert fixed["kl_place"] == "reward"


def test_gspo_is_told_as_a_loss_of_whole_completions() -> None:
    told = Settings(config(actor_rollout_ref__actor__policy_loss={"loss_mode": "gspo"}), "0.9.1").named()
    assert told["importance_sampling_level"] == "sequence"


def test_a_model_on_this_machine_says_how_many_ids_it_emits_and_all_that_end_a_completion(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 64}))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, 7]}))
    here = Settings(config(actor_rollout_ref__model={"path": str(tmp_path)}), "0.9.1")
    assert embedding_rows(here) == 64
    assert stop_ids(SimpleNamespace(tokenizer=SimpleNamespace(eos_token_id=2)), here) == {1, 2, 7}


def test_a_model_on_a_hub_is_not_asked_for() -> None:
    hub = Settings(config(actor_rollout_ref__model={"path": "some/model"}), "0.9.1")
    assert hub.model_folder is None
    assert embedding_rows(hub) is None
    assert stop_ids(SimpleNamespace(tokenizer=SimpleNamespace(eos_token_id=2)), hub) == {2}


def test_a_configuration_that_is_none_is_no_error() -> None:
    assert Settings.of(None).kl is None
    assert Settings.of(None).length_cap is None


# -- aggregation ---------------------------------------------------------------------------------------


def aggregated(mode: str, losses: Tensor) -> Tensor:
    """As verl's documentation of ``loss_agg_mode`` says it, of one mini-batch."""
    mask = MASK.double()
    rows = (mask.sum(1) > 0).double()
    if mode == "token-mean":
        return (losses * mask).sum() / mask.sum()
    if mode == "token-sum":
        return (losses * mask).sum()
    by_row = (losses * mask).sum(1)
    if mode == "seq-mean-token-mean":
        by_row = by_row / mask.sum(1).clamp(min=1)
    mean = (by_row * rows).sum() / rows.sum()
    return mean / MASK.shape[1] if mode == "seq-mean-token-sum-norm" else mean


@pytest.mark.parametrize(
    "mode",
    ["token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-mean"],
)
def test_a_tokens_weight_is_the_derivative_of_the_aggregation(mode: str) -> None:
    losses = torch.ones(MASK.shape, dtype=torch.float64, requires_grad=True)
    aggregated(mode, losses).backward()  # type: ignore[no-untyped-call]
    weights = token_weights(mode, MASK)
    assert weights is not None
    assert losses.grad is not None
    assert torch.allclose(weights.expand(MASK.shape) * MASK, losses.grad)


def test_over_several_mini_batches_the_norm_is_the_root_of_their_mean_square() -> None:
    halves = [torch.ones(4, 3, dtype=torch.bool), torch.ones(4, 3, dtype=torch.bool)]
    pull = torch.arange(24, dtype=torch.float64).reshape(8, 3)
    squares = []
    for half, part in zip(halves, pull.split(4), strict=True):
        weight = token_weights("token-mean", half)
        assert weight is not None
        squares.append(float(((weight * part) ** 2).sum()))
    whole = token_weights("token-mean", torch.cat(halves), mini_batches=2)
    assert whole is not None
    assert float(((whole * pull) ** 2).sum()) == pytest.approx(np.mean(squares))


def test_an_aggregation_that_is_not_known_has_no_weights() -> None:
    assert token_weights("of-tomorrow", MASK) is None


# -- the loss on workers -------------------------------------------------------------------------------


def measured(data: dict[str, Any], logp: Tensor, by_sequence: bool = False) -> Any:
    found = [launch() for _, launch in pieces(torch.tensor(0.5), data, logp, 0.2, 0.2, by_sequence=by_sequence)]
    return sum((reduction.tally() for reduction in found), Tally.zero()).measured()


def new_logprobs(**planted: float) -> tuple[dict[str, Any], Tensor]:
    data = columns()
    old = torch.nested.to_padded_tensor(data["old_log_probs"], 0.0)
    logp = old.clone()
    for place, shift in planted.items():
        row, column = map(int, place.removeprefix("at").split("_"))
        logp[row, column] += shift
    return data, logp


def test_the_largest_ratio_of_new_to_old_is_told_with_its_token_and_no_row() -> None:
    data, logp = new_logprobs(at3_2=3.0)
    found = measured(data, logp)
    assert found.values["ratio.max"] == pytest.approx(math.exp(3.0), rel=1e-5)
    worst = found.extremes["ratio.max"]
    assert (worst.token_id, worst.position, worst.sample) == (9, 2, None)
    assert found.values["ratio.clip_high_share"] == pytest.approx(1 / sum(map(len, completions())))


def test_a_ratio_beyond_verls_own_clamp_is_told_as_it_is() -> None:
    data, logp = new_logprobs(at0_0=40.0)
    assert measured(data, logp).values["ratio.max"] == pytest.approx(math.exp(40.0), rel=1e-4)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_log_probs_in_the_loss_that_are_not_finite_are_counted(value: float) -> None:
    data, logp = new_logprobs()
    logp[2, 1] = value
    found = measured(data, logp)
    assert found.values["numerics.nonfinite_policy"] == 1
    assert found.values["numerics.nonfinite_old"] == 0
    assert found.values["ratio.max"] == pytest.approx(1.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_is_counted(value: float) -> None:
    data, logp = new_logprobs()
    found = [launch() for _, launch in pieces(torch.tensor(value), data, logp, 0.2, 0.2, by_sequence=False)]
    told = sum((reduction.tally() for reduction in found), Tally.zero()).measured()
    assert told.values["numerics.nonfinite_loss"] == 1


def test_a_loss_of_whole_completions_clips_no_token() -> None:
    data, logp = new_logprobs(at3_2=3.0)
    found = measured(data, logp, by_sequence=True)
    assert "ratio.clip_share" not in found.values
    assert "whole completion" in found.missing["ratio.clip_share"]
    assert found.values["ratio.max"] > 1


def test_the_driver_is_told_once_of_what_a_rank_has_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "LEDGER", workers.Ledger())
    data, logp = new_logprobs(at3_2=3.0)
    for _, launch in pieces(torch.tensor(0.5), data, logp, 0.2, 0.2, by_sequence=False):
        workers.LEDGER.add(launch())
    worker = SimpleNamespace(actor=SimpleNamespace(engine=SimpleNamespace()))
    asked = DataProto.from_dict(non_tensors={workers.COLUMN: np.array([""], dtype=object)})
    first, second = (
        Tally.from_dict(json.loads(workers.take(worker, asked).non_tensor_batch[workers.COLUMN][0])["tally"])
        for _ in range(2)
    )
    assert first.measured().values["ratio.max"] == pytest.approx(math.exp(3.0), rel=1e-5)
    assert "ratio.max" not in second.measured().values


def test_ranks_that_hold_copies_of_the_same_rows_are_heard_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "LEDGER", workers.Ledger())
    data, logp = new_logprobs()
    for _, launch in pieces(torch.tensor(0.5), data, logp, 0.2, 0.2, by_sequence=False):
        workers.LEDGER.add(launch())
    engine = SimpleNamespace(is_mp_src_rank_with_outputs=lambda: False)
    asked = DataProto.from_dict(non_tensors={workers.COLUMN: np.array([""], dtype=object)})
    told = workers.take(SimpleNamespace(actor=SimpleNamespace(engine=engine)), asked)
    assert Tally.from_dict(json.loads(told.non_tensor_batch[workers.COLUMN][0])["tally"]) == Tally.zero()


def test_a_driver_that_never_asks_costs_no_memory() -> None:
    ledger = workers.Ledger()
    for _ in range(workers.KEPT_MAX + 10):
        ledger.add(object())
    assert len(ledger.found) == workers.KEPT_MAX
