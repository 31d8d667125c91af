"""From a hook in a training process to the words that people read: service, doctor, list of checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlvitals
from rlvitals import cli
from rlvitals.integrations.hooks import HookTable
from tests.end_to_end.server import Server, wait_until

pytestmark = pytest.mark.slow


def test_a_blind_hook_is_told_at_every_place_where_people_look(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reporter = rlvitals.init(run="blind", config={"api_key": "never-told", "beta": 0.1})
    table = HookTable("verl", "0.9.1")
    table.add("batch", "PPOTrainer._compute_metrics", "text, lengths and rewards", patched=True)
    table.add("scalars", "Tracking.log", "the trainer's own numbers", patched=True)
    table.tell(reporter)
    assert reporter.flush(30)
    told = server.ask("/runs/blind/hooks")
    assert (told["well"], told["summary"]) == (True, "0 of 2 hooks see so far")

    for step in range(1, 5):
        table.saw("scalars")
        reporter.report(step, {"policy.loss": 0.5})
        table.step_ends(reporter, step)
    assert reporter.flush(30)
    wait_until(lambda: server.last_step("blind") == 4, "the last step")
    told = server.ask("/runs/blind/hooks")
    missing = "hook batch of verl 0.9.1 was never called; missing: text, lengths and rewards"
    assert (told["well"], told["summary"]) == (False, f"1 of 2 hooks see: {missing}")
    run = server.ask("/runs/blind")
    assert (run["light"], run["reason"]) == ("green", f"all quiet, as far as 1 of 2 hooks see: {missing}")
    assert run["config"]["api_key"] != "never-told"

    monkeypatch.setattr("rlvitals.doctor.examine_trainers", lambda env: iter(()))
    assert cli.main(["doctor", "blind"]) == 1
    assert "BLIND   batch  PPOTrainer._compute_metrics; missing: text" in capsys.readouterr().out
    assert cli.main(["doctor"]) == 0
    assert "answers and takes the token" in capsys.readouterr().out
    monkeypatch.setenv("RLVITALS_TOKEN", "rlv_wrong")
    assert cli.main(["doctor"]) == 1
    assert "refuses the token (401" in capsys.readouterr().out

    table.saw("batch")
    reporter.report(5, {"policy.loss": 0.5})
    table.step_ends(reporter, 5)
    reporter.event("checkpoint", 5, folder="/ckpt/5")
    reporter.close()
    wait_until(lambda: server.ask("/runs/blind")["state"] == "finished", "the end")
    healed = server.ask("/runs/blind")
    assert (healed["light"], healed["reason"]) == ("green", "finished; no alert was firing at its end")
    assert server.ask("/runs/blind/hooks")["summary"] == "2 of 2 hooks see"
    (saved,) = server.ask("/runs/blind/events?kind=checkpoint")
    assert (saved["step"], Path(saved["payload"]["folder"])) == (5, Path("/ckpt/5"))
