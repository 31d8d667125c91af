"""A policy beside a run that is there already: what it would have set, in a table and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from rlvitals.contract.report import RunInfo
from rlvitals_monitor.alerts.replay import Step
from rlvitals_monitor.control.command import main
from rlvitals_monitor.control.dry_run import dry_run
from rlvitals_monitor.control.kl_decision import KlDecision, KlSettings, KlWhy
from rlvitals_monitor.control.kl_policies import POLICIES
from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from tests.monitor.alerts.recorded import toy
from tests.monitor.batches import NOW, batch, step

BEGAN = datetime(2026, 1, 1, tzinfo=timezone.utc)
CALM = {"kl.coef": 0.1, "kl.capped": 0.2, "kl.pull_ratio": 0.3, "kl.grad_max": 1.0, "reward.mean": 0.5}
SETTINGS = KlSettings(users=None, target=0.2)


def steps(values: Mapping[str, float], count: int = 60, first: int = 0) -> list[Step]:
    return [(n, BEGAN + timedelta(seconds=60 * n), values) for n in range(first, first + count)]


def set_by(made: list[KlDecision]) -> list[tuple[int, float]]:
    return [(d.step, d.value) for d in made if d.value is not None]


def test_the_runs_first_coefficient_is_the_users() -> None:
    made = list(dry_run(POLICIES["guarded"], steps({**CALM, "kl.pull_ratio": 2.0}), SETTINGS))
    assert set_by(made) == [(49, 0.08)]


def test_the_pull_shrinks_with_the_coefficient_that_would_have_been_set() -> None:
    # 1.2 at 0.1 is 0.96 at 0.08, so one change is enough
    made = list(dry_run(POLICIES["gradient-guard"], steps({**CALM, "kl.pull_ratio": 1.2}, 300), SETTINGS))
    assert set_by(made) == [(49, 0.08)]
    assert "0.96 times" in made[-1].reason


def test_a_run_that_moves_its_own_coefficient_is_told_as_another_hand() -> None:
    moved = [*steps(CALM), *steps({**CALM, "kl.coef": 0.13}, 10, 60)]
    made = list(dry_run(POLICIES["guarded"], moved, SETTINGS))
    assert made[60].why is KlWhy.OTHER_HAND


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, KlWhy.NO_BASELINE),
        (math.nan, KlWhy.NO_BASELINE),
        (math.inf, KlWhy.NO_BASELINE),
        (0.0, KlWhy.NO_BASELINE),
    ],
)
def test_a_run_without_a_coefficient_has_no_baseline(value: float | None, why: KlWhy) -> None:
    values = {name: number for name, number in CALM.items() if name != "kl.coef"}
    if value is not None:
        values["kl.coef"] = value
    assert {d.why for d in dry_run(POLICIES["guarded"], steps(values), SETTINGS)} == {why}


@pytest.mark.parametrize(
    ("value", "why"), [(math.nan, KlWhy.NAN), (math.inf, KlWhy.INFINITE), (-math.inf, KlWhy.INFINITE)]
)
def test_a_coefficient_that_becomes_no_number_holds(value: float, why: KlWhy) -> None:
    made = list(dry_run(POLICIES["guarded"], [*steps(CALM), *steps({**CALM, "kl.coef": value}, 5, 60)], SETTINGS))
    assert {d.why for d in made[60:]} == {why}


def test_open_alerts_are_those_of_the_shipped_rules() -> None:
    pulled = {**CALM, "kl.pull_ratio": 2.0, "kl.grad_top_id_share": 0.99, "kl.grad_max": 500.0}
    made = list(dry_run(POLICIES["guarded"], steps(pulled), SETTINGS, rules=load_rules()))
    assert set_by(made) == []
    assert made[-1].why is KlWhy.ALERT
    assert "kl_grad_one_id" in made[-1].reason


def test_a_kl_that_was_not_zero_at_the_start_does_not_hold_a_policy_for_good() -> None:
    made = list(
        dry_run(POLICIES["guarded"], steps({**CALM, "kl.pull_ratio": 2.0}, 260), SETTINGS, rules=load_rules())
    )
    assert "reference_mismatch" in made[150].reason
    assert [step for step, _ in set_by(made)] == [248]


def test_no_policy_touches_the_coefficient_of_the_recorded_run_that_trains_on_a_forced_token() -> None:
    rules = load_rules()
    for name, policy in POLICIES.items():
        recorded = toy("forced_eos_k3")
        made = list(dry_run(policy, recorded, KlSettings(users=None, target=0.3), rules=rules))
        assert [step for step, _ in set_by(made) if step >= 70] == [], name


def a_log(folder: Path, values: Mapping[str, float], count: int = 60) -> str:
    """A run whose KL begins at 0, as the KL of every sound run does."""
    path = folder / "run.jsonl"
    none = {name: 0.0 for name in values if name in ("kl", "kl.capped")}
    rows = [{"step": n, **values, **(none if n < 5 else {})} for n in range(count)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_the_command_prints_changes_and_stretches_of_holding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = a_log(tmp_path, {**CALM, "kl.pull_ratio": 2.0})
    assert main(["dry-run", log, "--policy", "guarded", "--target", "0.2"]) == 0
    said = capsys.readouterr().out
    assert "lower to 0.08" in said
    assert "hold (warm-up)" in said
    assert "hold (cool-down)" in said
    assert "not known" in said
    assert "WARNING" not in said


def test_the_command_as_json_says_every_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = a_log(tmp_path, {**CALM, "kl.pull_ratio": 2.0})
    assert main(["dry-run", log, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["policy"], told["steps"], len(told["decisions"])) == ("guarded", 60, 60)
    assert told["decisions"][49] == {
        "step": 49,
        "action": "set",
        "value": 0.08,
        "why": "lower",
        "reason": "the KL pull is 2 times the policy's: above 1 on 2 of 3 steps",
    }
    assert told["decisions"][50]["action"] == "hold"
    assert told["decisions"][50]["value"] is None


def test_the_articles_rule_is_never_shown_without_its_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = a_log(tmp_path, CALM)
    assert main(["dry-run", log, "--policy", "article", "--target", "0.2"]) == 0
    assert "WARNING: this rule turns the wrong way" in capsys.readouterr().out
    assert main(["dry-run", log, "--policy", "article", "--target", "0.2", "--json"]) == 0
    assert "wrong way" in json.loads(capsys.readouterr().out)["warning"]


def test_a_trainers_own_log_without_our_hooks_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = a_log(tmp_path, {"kl": 0.3, "reward": 0.5, "loss": 0.1})
    assert main(["dry-run", log, "--target", "0.2", "--coefficient", "0.04"]) == 0
    assert "kl.capped is not measured" in capsys.readouterr().out
    assert main(["dry-run", log, "--target", "0.2", "--coefficient", "0.04", "--policy", "target-tracking"]) == 0
    assert "raise to 0.05" in capsys.readouterr().out


def test_a_stored_run_is_tried_with_its_own_coefficient_and_target(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLVITALS_DATABASE_URL", sqlite_url)
    pulled = {name: number for name, number in CALM.items() if name != "kl.coef"} | {"kl.pull_ratio": 2.0}
    info = RunInfo(id="r1", config={"kl_coef": 0.1, "kl_target": 0.2})
    store = Store(sqlite_url)
    rows = [{**pulled, "kl.capped": 0.0} if n < 5 else pulled for n in range(60)]
    with store.begin() as connection:
        store_batch(
            connection, batch(*(step(n + 1, n, row) for n, row in enumerate(rows)), run="r1", info=info), NOW
        )
    store.close()
    assert main(["dry-run", "r1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["target"] == 0.2
    assert [(d["step"], d["value"]) for d in told["decisions"] if d["action"] == "set"] == [(49, 0.08)]


def test_a_log_without_a_step_and_a_run_that_is_not_there_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert main(["dry-run", str(empty)]) == 2
    assert "no training step" in capsys.readouterr().err
    monkeypatch.setenv("RLVITALS_DATABASE_URL", f"sqlite:///{tmp_path}/none.db")
    assert main(["dry-run", "r404"]) == 2
    assert "rlvitals control: " in capsys.readouterr().err
