"""Bands from healthy runs: an ordinary rule file, which never rings on the runs that it was learned from."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

import pytest

from rlvitals.contract.metrics import METRICS
from rlvitals_monitor.alerts.replay import episodes, replay
from rlvitals_monitor.backtest import main
from rlvitals_monitor.bands import Band, Learned, learn_bands, write_rules
from rlvitals_monitor.rules.loader import load_over, load_text

START = datetime(2026, 1, 1, tzinfo=timezone.utc)


def run(seed: int, **levels: float) -> list[Mapping[str, float]]:
    dice = random.Random(seed)
    means = {"gradient.norm": 1.0, "policy.entropy": 0.8} | {k.replace("__", "."): v for k, v in levels.items()}
    return [{name: mean * dice.uniform(0.8, 1.2) for name, mean in means.items()} for _ in range(100)]


def rung(text: str, steps: list[Mapping[str, float]]) -> set[str]:
    rules = [rule for rule in load_over(text) if rule.group == "learned"]
    found = episodes(replay(rules, ((at, START, values) for at, values in enumerate(steps, 1)), {}))
    return {episode.alert for episode in found}


def test_a_sick_run_leaves_the_band_and_healthy_ones_do_not() -> None:
    runs = {"a": run(1), "b": run(2), "c": run(3)}
    text = write_rules(learn_bands(runs), list(runs))
    assert all(rung(text, steps) == set() for steps in runs.values())
    assert rung(text, run(4)) == set()
    assert rung(text, run(5, gradient__norm=9.0)) == {"band_gradient_norm"}
    assert rung(text, run(6, gradient__norm=math.inf)) == {"band_gradient_norm"}


def test_a_metric_that_differs_between_healthy_runs_has_no_band() -> None:
    learned = learn_bands({"a": run(1), "b": run(2), "other": run(3, gradient__norm=30.0)})
    assert "gradient.norm" not in learned.bands
    assert learned.left_out["gradient.norm"] == "other"
    assert "policy.entropy" in learned.bands
    assert "# left out, since other left its band: gradient.norm" in write_rules(learned, ["a"])


def test_numbers_that_are_not_finite_teach_nothing() -> None:
    runs = {name: [{**v, "kl.k3": math.nan} for v in run(seed)] for name, seed in (("a", 1), ("b", 2))}
    assert "kl.k3" not in learn_bands(runs).bands


def test_one_run_says_nothing_of_the_spread_between_runs() -> None:
    with pytest.raises(ValueError, match="two healthy runs or more"):
        learn_bands({"a": run(1)})


def test_runs_that_teach_nothing_leave_a_file_that_says_so() -> None:
    short = {"a": run(1)[:5], "b": run(2)[:5]}
    text = write_rules(learn_bands(short), list(short))
    assert "# Nothing was learned: no metric that can be worse has 50 values and some spread." in text
    assert load_text(text) == ()
    assert "Nothing was learned" not in write_rules(learn_bands({"a": run(1), "b": run(2)}), ["a", "b"])


def test_every_metric_can_have_a_rule_and_no_name_breaks_the_file() -> None:
    learned = Learned(bands={m.name: Band(low=-1e-7, high=1e300) for m in METRICS}, left_out={"x": "a\nb: c"})
    assert len(load_text(write_rules(learned, ["bad\nname"]))) == len(METRICS)
    assert load_text(write_rules(Learned(bands={}, left_out={}), ["a"])) == ()


def test_the_command_line_writes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLVITALS_DATABASE_URL", f"sqlite:///{tmp_path / 'none.db'}")
    for seed in (1, 2):
        lines = [f"step:{at} - actor/grad_norm:{v['gradient.norm']}" for at, v in enumerate(run(seed), 1)]
        (tmp_path / f"{seed}.log").write_text("\n".join(lines))
    assert main(["learn", str(tmp_path / "1.log"), str(tmp_path / "2.log")]) == 0
    own = tmp_path / "bands.yaml"
    own.write_text(capsys.readouterr().out)
    assert main(["check", str(own)]) == 0
    assert main(["learn", str(tmp_path / "1.log")]) == 1
