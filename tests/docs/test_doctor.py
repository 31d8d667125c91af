"""The page on hooks says what the code does."""

from __future__ import annotations

from pathlib import Path

from rlvitals.contract.report import Phase
from rlvitals.integrations.hooks import BLIND_AFTER_STEPS, RETOLD_EVERY_STEPS
from rlvitals_monitor.store.handshake import BLIND_STEPS
from rlvitals_monitor.store.pulse import FIRST_STEP_ELSE, FIRST_STEP_WITHIN, SILENT_TIMES

PAGE = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text("utf-8")


def test_its_numbers_are_those_in_force() -> None:
    minutes = {phase: round(within.total_seconds() / 60) for phase, within in FIRST_STEP_WITHIN.items()}
    usual = {minutes[phase.value] for phase in (Phase.STARTING, Phase.ROLLOUT, Phase.CHECKPOINT)}
    assert usual == {60}
    assert minutes.keys() == {
        phase.value for phase in (Phase.STARTING, Phase.ROLLOUT, Phase.CHECKPOINT, Phase.EVAL)
    }
    assert "| starting, rollout, checkpoint | 60 min" in PAGE
    assert f"| evaluation | {minutes['eval']} min" in PAGE
    assert f"| anything else | {round(FIRST_STEP_ELSE.total_seconds() / 60)} min" in PAGE
    assert (SILENT_TIMES, "Three times as long counts as stalled" in PAGE) == (3, True)
    assert (RETOLD_EVERY_STEPS, "at most fifty steps old" in PAGE) == (50, True)
    assert (BLIND_AFTER_STEPS, BLIND_STEPS, "three steps have ended" in PAGE) == (3, 3, True)
