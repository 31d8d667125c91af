"""Two real ranks over gloo: one report, the same coefficient on both, and a pause that no collective notices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rlvitals
from rlvitals.contract.report import Extreme
from rlvitals.integrations.ranks import Ranks
from rlvitals.integrations.steps import Finished
from rlvitals.integrations.telling import Teller
from rlvitals.probes.reduction import Pending
from rlvitals.probes.tally import Tally
from rlvitals.reporter import Reporter
from tests.client.integrations import rank as rank_module
from tests.client.integrations.conftest import MakeTrainer
from tests.client.integrations.pair import run_pair

DEADLINE_S = 240.0


def test_alone_everything_passes_through() -> None:
    ranks = Ranks.meet(1.0)
    tally = Tally(counts={"kl.tokens": 3}, maxima={"kl.grad_max": Extreme(value=1.0)})
    assert (ranks.alone, ranks.rank, ranks.size) == (True, 0, 1)
    assert ranks.gather(tally) is tally
    assert ranks.agree([(4, 0.5)]) == [(4, 0.5)]
    assert ranks.agree_to_wait(True) is True


class Wire(Ranks):
    """Two ranks of which this is the first; what the other would get goes over the wire and back."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 2
        self.sent: list[tuple[Tally, Tally]] = []

    def gather(self, tally: Tally) -> Tally:
        self.sent.append((tally, Tally.from_dict(json.loads(json.dumps(tally.to_dict())))))
        return tally

    def agree(self, actions: Any) -> Any:
        return list(actions)

    def agree_to_be_late(self, late: bool) -> bool:
        return late


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_all_that_a_step_tells_crosses_the_wire_unchanged_and_adds_up(
    make: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = Wire()
    monkeypatch.setattr(Ranks, "meet", lambda timeout_s: wire)
    trainer = make(num_iterations=2)
    rlvitals.attach(trainer)
    trainer.train()
    assert len(wire.sent) == 4
    for own, came in wire.sent:
        assert came.measured() == own.measured()
        twice = (own + came).measured()
        for name in ("policy.loss_tokens", "length.completions", "policy.forced_loss_tokens"):
            if name in own.measured().values:
                assert twice.values[name] == 2 * own.measured().values[name]
        for name in ("policy.entropy", "gradient.top_parameter_share", "ratio.reference_max", "kl.k3"):
            assert twice.values[name] == pytest.approx(own.measured().values[name])


class Calls(Ranks):
    """The second of two ranks, of which rank 0 is late or not; only what it takes part in is counted."""

    def __init__(self, late: bool) -> None:
        super().__init__()
        self.rank, self.size, self.late = 1, 2, late
        self.calls: list[str] = []

    def gather(self, tally: Tally) -> Tally:
        self.calls.append("gather")
        return tally

    def agree_to_be_late(self, late: bool) -> bool:
        self.calls.append("late?")
        return self.late


@pytest.mark.parametrize(
    ("late", "calls"), [(False, ["late?", *["gather"] * 3]), (True, ["late?", *["gather"] * 2])]
)
def test_a_rank_whose_measuring_fails_takes_part_as_often_as_the_others(late: bool, calls: list[str]) -> None:
    ranks = Calls(late)
    teller = Teller(reporter=Reporter.disabled(), ranks=ranks)
    for step, measured in enumerate([False, True, False], start=1):
        pending = Pending([]) if measured else None
        teller.tell(Finished(step=step, values={}, tally=Tally.zero(), pending=pending))
    assert ranks.calls == calls
    teller.settle()
    assert ranks.calls.count("gather") == 3


@pytest.mark.slow
def test_two_ranks_pause_together_beyond_the_time_out_and_agree_on_the_coefficient(
    policy: Path, tmp_path: Path
) -> None:
    told = run_pair(rank_module.__name__, tmp_path, str(policy), str(tmp_path), deadline_s=DEADLINE_S)
    first, second = sorted(told, key=lambda rank: int(rank["rank"]))
    assert (first["enabled"], second["enabled"]) == (True, False)
    assert first["beats"] * 0.5 > rank_module.TIMEOUT_S
    assert (first["steps"], second["steps"]) == (4, 4)
    assert (first["beta"], second["beta"]) == (0.1, 0.1)
    assert first["weights"] == second["weights"]
    assert first["outcomes"] == [["k", "applied"], ["p", "applied"], ["r", "applied"]]
    assert [values["length.completions"] for values in first["values"]] == [8, 8, 8, 8]
    assert [values["kl.coef"] for values in first["values"]] == [0.5, 0.5, 0.1, 0.1]
    for values in first["values"]:
        assert values["reward.group_size"] == 4, "rewards are the same on both ranks and count once"
        assert values["length.mean"] * 8 == values["policy.loss_tokens"], "of both ranks"
        assert 0 < values["gradient.top_parameter_share"] <= 1
        assert values["gradient.update_ratio"] > 0 == values["gradient.skipped_steps"]
        assert {"text.looping_completions", "text.duplicate_rate", "policy.entropy_p10"} <= set(values)
        assert 0 < values["progress.phase_update_s"] <= values["progress.step_time"]
