"""Findings about a trainer's settings, told with the key that they stand under."""

from __future__ import annotations

from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.trainer_config import TrainerConfig
from rlvitals.preflight.trainer_keys import Setting


def finding_at(
    config: TrainerConfig,
    check: str,
    verdict: Verdict,
    subject: str,
    evidence: str,
    fix: str,
    setting: Setting | None = None,
) -> Finding:
    """What speaks, at the key of ``setting``."""
    where = config.at(config.find(setting)) if setting is not None else config.where
    return Finding(check=check, verdict=verdict, subject=subject, evidence=evidence, fix=fix, where=where)


def ok(check: str, subject: str, evidence: str) -> Finding:
    return Finding(check=check, verdict=Verdict.OK, subject=subject, evidence=evidence)


def skipped(check: str, subject: str, why: str) -> Finding:
    return Finding(check=check, verdict=Verdict.SKIPPED, subject=subject, evidence=why)
