"""What a run has journalled, as plain data."""

from __future__ import annotations

from typing import Any

from rlvitals.contract.command import Outcome
from rlvitals.contract.report import Event, StepReport
from rlvitals.follow import Follower
from rlvitals.reporter import Reporter
from rlvitals.spool import journal_folder


def told_by(reporter: Reporter) -> dict[str, Any]:
    """Steps with values, reasons and extremes, outcomes of commands, events."""
    follower = Follower(journal_folder(reporter.settings.spool, reporter.run.id, reporter.attempt))
    found = [item.record for item in follower.read(1_000_000)]
    follower.close()
    return {
        "steps": [
            {
                "step": record.step,
                "values": {name: float(value) for name, value in record.values.items()},
                "missing": dict(record.missing),
                "extremes": {
                    name: {"token_id": extreme.token_id, "position": extreme.position, "sample": extreme.sample}
                    for name, extreme in record.extremes.items()
                },
            }
            for record in found
            if isinstance(record, StepReport)
        ],
        "outcomes": [
            {
                "command": record.command_id,
                "state": record.state.value,
                "before": record.before,
                "after": record.after,
                "reason": record.reason,
                "step": record.step,
            }
            for record in found
            if isinstance(record, Outcome)
        ],
        "events": [
            {"kind": record.kind.value, "step": record.step, "payload": dict(record.payload)}
            for record in found
            if isinstance(record, Event)
        ],
    }
