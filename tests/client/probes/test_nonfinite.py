"""The census tells NaN, +Inf, -Inf, padding and absence apart."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.probes import reduction
from rlvitals.probes.gradients import tally_gradient_norm
from rlvitals.probes.nonfinite import tally_nonfinite
from rlvitals.probes.tally import Tally

NAN, INF = math.nan, math.inf
OF_A_KIND = ("numerics.nan", "numerics.positive_infinity", "numerics.negative_infinity")
MASK = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]])
IDS = torch.arange(8).reshape(2, 4)


def clean() -> torch.Tensor:
    return torch.full((2, 4), -1.0)


@pytest.mark.parametrize(("bad", "kind"), [(NAN, "nan"), (INF, "positive"), (-INF, "negative")])
@pytest.mark.parametrize("name", ["logp", "ref", "old"])
def test_each_kind_in_each_log_prob_is_counted_and_its_token_named(bad: float, kind: str, name: str) -> None:
    tensors = {"logp": clean(), "ref": clean(), "old": clean()}
    tensors[name][1, 1] = bad
    tally = tally_nonfinite(**tensors, mask=MASK, ids=IDS, sample_offset=10)
    assert {k for k, n in tally.counts.items() if n} == {f"nonfinite.{name}", f"nonfinite.{name}.{kind}"}
    measured = tally.measured()
    assert measured.values["numerics.nonfinite_logprobs"] == measured.values["numerics.nonfinite"] == 1
    assert measured.values["numerics.nonfinite_padding"] == 0
    first = measured.extremes["numerics.nonfinite_logprobs"]
    assert (first.sample, first.position, first.token_id, first.masked) == (11, 1, 5, False)
    assert repr(first.value) == repr(bad)


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_outside_the_mask_it_is_padding_and_no_alert(bad: float) -> None:
    logp = clean()
    logp[0, 3] = bad
    measured = tally_nonfinite(logp=logp, mask=MASK).measured()
    assert measured.values["numerics.nonfinite_padding"] == 1
    assert measured.values["numerics.nonfinite"] == measured.values["numerics.nonfinite_logprobs"] == 0
    assert "numerics.nonfinite_logprobs" not in measured.extremes


def test_infinities_that_cancel_in_a_sum_are_found_all_the_same() -> None:
    logp = clean()
    logp[0, 0], logp[0, 1] = INF, -INF
    assert tally_nonfinite(logp=logp, mask=MASK).measured().values["numerics.nonfinite"] == 2


def test_of_many_the_first_is_named_whatever_the_order_of_merging() -> None:
    late, early = clean(), clean()
    late[0, 0], early[1, 0], early[1, 1] = NAN, INF, NAN
    parts = [
        tally_nonfinite(logp=late, mask=MASK, sample_offset=2),
        tally_nonfinite(logp=early, mask=MASK, sample_offset=0),
    ]
    for tally in (parts[0] + parts[1], parts[1] + parts[0]):
        first = tally.measured().extremes["numerics.nonfinite_logprobs"]
        assert (first.sample, first.position, first.value) == (1, 0, INF)


@pytest.mark.parametrize(("loss", "count"), [(1.0, 0), (NAN, 1), (torch.tensor(-INF), 1), ([NAN, 1.0, INF], 2)])
def test_losses_are_counted_one_by_one(loss: object, count: int) -> None:
    values = tally_nonfinite(loss=loss).measured().values
    assert values.items() >= {"numerics.nonfinite_loss": count, "numerics.nonfinite": count}.items()
    assert sum(values[kind] for kind in OF_A_KIND) == count


def test_advantages_are_counted_as_they_come() -> None:
    values = tally_nonfinite(advantages=torch.tensor([NAN, 1.0, INF, -INF])).measured().values
    assert values == {"numerics.nonfinite_advantages": 3, "numerics.nonfinite": 3} | dict.fromkeys(OF_A_KIND, 1)


def test_what_the_trainer_does_not_have_is_not_counted_as_healthy() -> None:
    measured = tally_nonfinite().measured()
    assert not measured.values
    assert not measured.missing


def test_without_a_mask_every_token_counts() -> None:
    logp = clean()
    logp[0, 3] = NAN
    assert tally_nonfinite(logp=logp).measured().values["numerics.nonfinite_logprobs"] == 1


@pytest.mark.parametrize("shape", [(0, 4), (2, 0)])
def test_an_empty_batch_is_clean(shape: tuple[int, int]) -> None:
    empty = torch.zeros(shape)
    values = tally_nonfinite(logp=empty, mask=empty, ids=empty.long()).measured().values
    assert values["numerics.nonfinite"] == 0


def test_half_precision_that_overflows_in_its_sum_is_not_taken_for_non_finite() -> None:
    logp = torch.full((2, 4), -60000.0, dtype=torch.float16)
    assert tally_nonfinite(logp=logp, mask=MASK).measured().values["numerics.nonfinite"] == 0


def test_the_form_that_never_waits_counts_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    logp = clean()
    logp[0, 1], logp[1, 3] = -INF, NAN
    expected = tally_nonfinite(logp=logp, ref=clean(), mask=MASK, ids=IDS)
    monkeypatch.setattr(reduction, "on_host", lambda tensor: False)
    assert tally_nonfinite(logp=logp, ref=clean(), mask=MASK, ids=IDS) == expected


def told(tally: Tally) -> str:
    """Counts and witnesses in one order, where NaN is NaN."""
    return repr((sorted(tally.counts.items()), sorted(tally.firsts.items(), key=lambda first: first[0])))


VALUES = st.sampled_from([0.0, -1.0, NAN, INF, -INF])


@settings(max_examples=30)
@given(st.lists(st.tuples(VALUES, VALUES, st.booleans()), min_size=6, max_size=6), st.integers(0, 2))
def test_arrays_tensors_and_any_split_count_the_same(cells: list[tuple[float, float, bool]], cut: int) -> None:
    logp, rollout, mask = (torch.tensor(column).reshape(2, 3) for column in zip(*cells, strict=True))
    parts = [
        tally_nonfinite(logp=logp[a:b], rollout=rollout[a:b], mask=mask[a:b], ids=IDS[a:b, :3], sample_offset=a)
        for a, b in ((cut, 2), (0, cut), (0, 2))
    ]
    assert told(parts[0] + parts[1]) == told(parts[2])
    arrays = {"logp": logp.numpy(), "rollout": rollout.numpy(), "mask": mask.numpy(), "ids": IDS[:, :3].numpy()}
    assert told(tally_nonfinite(**arrays)) == told(parts[2])


def test_what_the_sampler_reported_is_counted_apart_from_the_trainers_own() -> None:
    rollout = clean()
    rollout[1, 1] = -INF
    measured = tally_nonfinite(logp=clean(), rollout=rollout, mask=MASK, ids=IDS).measured()
    assert (measured.values["numerics.nonfinite"], measured.values["numerics.nonfinite_rollout"]) == (0, 1)
    assert measured.extremes["numerics.nonfinite_rollout"].token_id == 5


@pytest.mark.parametrize(
    ("tensor", "metric"), [("logp", "policy"), ("ref", "reference"), ("old", "old"), ("rollout", "rollout")]
)
def test_each_tensor_has_its_own_count(tensor: str, metric: str) -> None:
    bad = clean()
    bad[0, 0] = NAN
    tensors = {"logp": clean(), "ref": clean(), "old": clean(), "rollout": clean()} | {tensor: bad}
    values = tally_nonfinite(**tensors, mask=MASK).measured().values
    counts = {name: values[f"numerics.nonfinite_{name}"] for name in ("policy", "reference", "old", "rollout")}
    assert {name for name, count in counts.items() if count} == {metric}


@pytest.mark.parametrize(("norm", "kind"), [(NAN, 0), (INF, 1), (torch.tensor(-INF), 2)])
def test_a_gradient_norm_that_is_not_finite_is_counted_by_its_kind(norm: object, kind: int) -> None:
    values = tally_gradient_norm(norm).measured().values
    assert [values[name] for name in OF_A_KIND] == [float(place == kind) for place in range(3)]
    assert values["numerics.nonfinite"] == values["numerics.nonfinite_gradient"] == 1


def test_the_census_of_arrays_runs_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np\n"
        "from rlvitals.probes.nonfinite import tally_nonfinite, tally_nonfinite_ratios\n"
        "nan = np.full((1, 2), np.nan)\n"
        "assert tally_nonfinite(logp=nan).counts['nonfinite.logp'] == 2\n"
        "assert tally_nonfinite_ratios(nan, nan, None).counts['nonfinite.ratios'] == 2\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
