"""What two ranks report together is what one reports that trains on their union, for every metric."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from rlvitals.contract import codec
from rlvitals.contract.metrics import METRICS
from rlvitals.contract.report import Histogram, StepReport
from tests.client.integrations import union_rank
from tests.client.integrations.pair import run_pair

pytestmark = pytest.mark.slow
DEADLINE_S = 240.0
OWN_TIME = ("progress.", "rlvitals.")
"""Of the clock and of our own process: no two runs have the same."""
WITHIN: Any = {"rel": 1e-6, "abs": 1e-6, "nan_ok": True}
NOT_HERE = ("component.", "critic.", "guard.", "correction.", "numerics.logit_", "numerics.nonfinite_logits")
"""Of other trainers or tools, or of the logits of a sampling that did not take place here."""
NOT_YET = {"gradient.loss_scale", "kl.parameter_grad_norm", "text.script_drift"}
"""Of float16, of a pass that each rank makes for itself, of longer runs."""
PER_LOSS = {"numerics.nonfinite_loss", "numerics.nonfinite", "numerics.nan"}
"""Losses are counted by micro-batches, of which two ranks have twice as many."""
BOTH = "all kinds, on both"

Told = Mapping[str, Mapping[str, Any]]


@pytest.fixture(scope="module")
def runs(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Told, Told]:
    """Of one rank alone, and of the first of two."""
    folder = tmp_path_factory.mktemp("union")
    first, second = run_pair(union_rank.__name__, folder, str(policy), str(folder), deadline_s=DEADLINE_S)
    assert [told["weights"] for told in first.values()] == [told["weights"] for told in second.values()]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as env, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in {"MODE": "offline", "DIR": str(folder / "spool"), "RAISE": "1"}.items():
            env.setenv(f"RLVITALS_{name}", value)
        alone = union_rank.run_all(policy, folder / "alone", 0, 1)
    torch.set_num_threads(threads)
    return alone, first


@pytest.mark.parametrize("case", union_rank.CASES)
def test_two_ranks_tell_what_one_tells_of_their_union(runs: tuple[Told, Told], case: str) -> None:
    alone, first = runs
    expected, merged = (_steps(told, case) for told in (alone, first))
    assert [step.step for step in merged] == [step.step for step in expected]
    skipped = PER_LOSS if case == BOTH else set()
    for one, two in zip(expected, merged, strict=True):
        assert _compared(two.values, skipped) == pytest.approx(_compared(one.values, skipped), **WITHIN)
        assert _compared(two.missing, skipped) == _compared(one.missing, skipped)
        assert _places(two) == _places(one)
        for name in set(one.extremes) - skipped:
            assert two.extremes[name].value == pytest.approx(one.extremes[name].value, **WITHIN)
    for one, two in zip(*(_histograms(told, case) for told in (alone, first)), strict=True):
        assert (two.step, two.metric, two.counts) == (one.step, one.metric, one.counts)
        assert two.edges == pytest.approx(one.edges, **WITHIN)


def test_all_that_the_trainer_can_give_was_compared(runs: tuple[Told, Told]) -> None:
    given = {name for case in union_rank.CASES for step in _steps(runs[1], case) for name in step.values}
    registered = {metric.name for metric in METRICS if not metric.name.startswith(OWN_TIME)}
    assert {name for name in registered - given if not name.startswith(NOT_HERE)} == NOT_YET


def test_what_one_rank_alone_has_is_told_of_that_rank(runs: tuple[Told, Told]) -> None:
    merged = _steps(runs[1], union_rank.ON_ONE_RANK)
    for step in merged:
        assert step.values["ratio.rollout_max"] > 0
        assert "ratio.rollout_max" not in step.missing
    assert merged[0].extremes["ratio.rollout_max"].sample >= union_rank.ROWS // 2, "a row of the second rank"


def _steps(told: Told, case: str) -> list[StepReport]:
    return [codec.decode(StepReport, step) for step in told[case]["steps"]]


def _histograms(told: Told, case: str) -> list[Histogram]:
    return [codec.decode(Histogram, histogram) for histogram in told[case]["histograms"]]


def _compared(named: Mapping[str, Any], skipped: set[str]) -> dict[str, Any]:
    return {name: value for name, value in named.items() if not name.startswith(OWN_TIME) and name not in skipped}


def _places(step: StepReport) -> dict[str, Any]:
    return {name: (e.sample, e.position, e.token_id, e.masked) for name, e in step.extremes.items()}
