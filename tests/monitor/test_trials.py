"""How precise rules were on chosen runs, on the command line and over REST."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals.contract.alert import Severity
from rlvitals_monitor.alerts.replay import episodes, replay
from rlvitals_monitor.backtest import main
from rlvitals_monitor.rules.loader import load_over, load_rules
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.trials import Trial, compare, keep_record
from tests.monitor.alerts.test_engine import RUN, send
from tests.monitor.rules.judging import START

OWN = (
    "groups:\n  - name: own\n    rules:\n      - alert: low_reward\n        expr: reward.mean < {limit}\n"
    "        labels: {{severity: warning}}\n        annotations: {{summary: s}}\n"
)


def trial(
    name: str, rewards: str, rules: tuple[Rule, ...], *, bad: bool = False, since: int | None = None
) -> Trial:
    steps = [(at, START, {"reward.mean": float(value)}) for at, value in enumerate(rewards.split(), 1)]
    found = tuple(episodes(replay(rules, steps, {})))
    return Trial(run=name, steps=len(steps), episodes=found, bad=bad, since=since, first=1)


def test_an_alert_is_right_on_a_run_that_went_bad_from_its_step_on() -> None:
    rules = load_over(OWN.format(limit=0.5))
    record = keep_record(
        [
            trial("bad", "1 0 1 0 1", rules, bad=True, since=4),
            trial("bad too", "0 1 1", rules, bad=True),
            trial("healthy", "1 0 1 1 1 1 1 1 1 1", rules),
            trial("missed", "1 1 1", rules, bad=True),
        ]
    )
    (rule,) = record.rules
    assert (rule.alert, rule.severity, rule.fired, rule.right) == ("low_reward", Severity.WARNING, 4, 2)
    assert rule.precision == 0.5
    assert rule.named == ("bad", "bad too")
    assert (record.bad_runs, record.quiet, record.false) == (3, ("missed",), 2)
    # ten of the healthy run, three before the step at which the first went bad
    assert record.healthy_steps == 13
    assert record.false_per_thousand == pytest.approx(1000 * 2 / 13)


def test_two_sets_of_rules_differ_where_they_speak_at_other_steps() -> None:
    strict, loose = load_over(OWN.format(limit=0.9)), load_over(OWN.format(limit=0.1))
    (one,) = compare([trial("a", "1 0.5 0", strict)], [trial("a", "1 0.5 0", loose)])
    assert (one.alert, one.ours, one.theirs) == ("low_reward", (2,), (3,))
    assert compare([trial("a", "1 0", strict)], [trial("a", "1 0", loose)]) == ()


def test_no_alert_and_no_healthy_step_divide_by_nothing() -> None:
    record = keep_record([trial("a", "1 1", load_rules(), bad=True)])
    assert (record.rules, record.false_per_thousand) == ((), 0.0)


@pytest.fixture
def logs(tmp_path: Path) -> tuple[str, str]:
    bad, good = tmp_path / "bad.log", tmp_path / "good.log"
    bad.write_text("".join(f"step:{n} - actor/grad_norm:{'nan' if n > 30 else 1}\n" for n in range(1, 41)))
    good.write_text("".join(f"step:{n} - actor/grad_norm:1\n" for n in range(1, 41)))
    return str(bad), str(good)


def test_the_command_line_tries_logs_and_says_how_precise_it_was(
    logs: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLVITALS_DATABASE_URL", f"sqlite:///{tmp_path / 'none.db'}")
    bad, good = logs
    other = tmp_path / "other.yaml"
    other.write_text("off: [nonfinite]\n")
    assert main(["backtest", bad, good, "--bad", f"{bad}@31", "--against", str(other)]) == 0
    said = capsys.readouterr().out
    assert f"{bad}: 40 steps, went bad" in said
    assert "bad runs named: 1 of 1" in said
    assert "false alarms: 0 on 70 healthy steps, 0.00 per 1,000" in said
    assert "100%" in said
    assert "nonfinite: step 31 here" in said
    assert "quiet there" in said
    assert main(["backtest", good, "--bad", "typo"]) == 1
    assert "--bad: expected one of" in capsys.readouterr().err


def test_the_same_over_rest(app: FastAPI, client: TestClient) -> None:
    send(app.state.store, RUN * 3)
    body = {"runs": [{"run": "r1", "bad": True}], "against": "off: [kl_pull_dominates]\n"}
    told = client.post("/api/v1/rules/backtest", json=body).json()
    assert told["runs"][0]["alerts"][0]["alert"] == "kl_pull_dominates"
    assert told["rules"][0]["precision"] == 1.0
    assert (told["bad_runs"], told["quiet"], told["false_alarms"]) == (1, [], 0)
    (one,) = told["differences"]
    assert (one["alert"], one["theirs"]) == ("kl_pull_dominates", [])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"runs": []}, 422),
        ({"runs": [{"run": "nobody"}]}, 404),
        ({"runs": [{"run": "../x"}]}, 422),
        ({"runs": [{"run": "r1", "bad": 3}]}, 422),
        ({"runs": [{"run": "r1"}], "rules": "groups: ["}, 422),
        ({"runs": [{"run": "r1"}] * 51}, 422),
        ({"runs": 3}, 422),
        ([], 422),
        ({"runs": [{"run": "x" * (4 << 20)}]}, 413),
    ],
)
def test_what_makes_no_sense_is_told(client: TestClient, body: object, status: int) -> None:
    answer = client.post("/api/v1/rules/backtest", json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")


def test_only_readers_may_ask(stranger: TestClient) -> None:
    assert stranger.post("/api/v1/rules/backtest", json={"runs": []}).status_code == 401
