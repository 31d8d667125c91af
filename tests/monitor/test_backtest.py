from __future__ import annotations

from pathlib import Path

import pytest

from rlvitals_monitor.alerts.engine import advance
from rlvitals_monitor.backtest import backtest, main
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.store import alerts
from rlvitals_monitor.store.engine import Store
from tests.monitor.alerts.test_engine import RUN, send
from tests.monitor.batches import NOW

SCENARIOS = Path(__file__).parents[1] / "scenarios"


def test_a_back_test_says_what_the_live_engine_said(store: Store) -> None:
    number = send(store, RUN * 3)
    found = backtest(store, "r1", load_rules())
    with store.begin() as connection:
        live = advance(connection, number, load_rules(), NOW).transitions
        rows, _ = alerts.page(connection, run="r1", limit=100)
    assert [(e.alert, e.fired) for e in found] == [
        (t.alert.rule, t.step) for t in live if t.after.value == "firing"
    ]
    assert sorted((e.fired, e.resolved) for e in found) == sorted((a.fired_step, a.resolved_step) for a in rows)
    assert len(found) == 3


def test_a_back_test_writes_nothing(store: Store) -> None:
    send(store, RUN)
    backtest(store, "r1", load_rules())
    with store.read() as connection:
        assert alerts.transitions_of(connection, "r1", 10) == []


def test_a_back_test_of_a_run_that_is_not_there(store: Store) -> None:
    with pytest.raises(NotFound):
        backtest(store, "r9", load_rules())


def test_check_says_how_many_rules_are_sound(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 0
    assert capsys.readouterr().out == f"{len(load_rules())} rules are sound\n"


def test_check_prints_every_problem_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("groups:\n  - nam: x\n", encoding="utf-8")
    assert main(["check", str(bad)]) == 1
    assert capsys.readouterr().err == f"{bad}:2: expected one of name, rules, got 'nam'; did you mean 'name'?\n"


def test_test_runs_scenarios(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", str(SCENARIOS / "kl.yaml")]) == 0
    assert capsys.readouterr().out.endswith("scenarios, 0 differences\n")


def test_test_fails_where_an_alert_does_not_come(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "scenarios:\n  - name: n\n    series: {gradient.norm: 1x3}\n"
        "    alerts: [{alert: nonfinite, severity: critical, fires: 2}]\n",
        encoding="utf-8",
    )
    assert main(["test", str(path)]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == (
        "1 scenarios, 1 differences\n",
        f"{path}:2: n: expected nonfinite (critical) fired at 2, open at the end\n",
    )


def test_a_file_that_is_not_there_is_an_error_and_no_crash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["test", str(tmp_path / "no.yaml")]) == 1
    assert "no.yaml" in capsys.readouterr().err


def test_backtest_prints_one_line_an_alert(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = Store(sqlite_url)
    send(opened, RUN)
    opened.close()
    monkeypatch.setenv("RLVITALS_DATABASE_URL", sqlite_url)
    assert main(["backtest", "r1"]) == 0
    line, last = capsys.readouterr().out.splitlines()
    assert line.split() == (
        [
            "step",
            "8",
            "warning",
            "kl_pull_dominates",
            "resolved",
            "at",
            "14",
            "kl.pull_ratio",
            "=",
            "4",
            "(fires",
            "above",
            "1)",
        ]
    )
    assert last == "1 alerts would have fired"
    assert main(["backtest", "r9"]) == 1


def test_list_names_the_rules_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("off: [truncation]\n", encoding="utf-8")
    monkeypatch.setenv("RLVITALS_RULES", str(own))
    assert main(["list"]) == 0
    listed = {line.split()[1] for line in capsys.readouterr().out.splitlines()}
    assert "nonfinite" in listed
    assert "truncation" not in listed
