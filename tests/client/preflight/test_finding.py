"""Verdicts order, and a report's exit status follows from its worst."""

from __future__ import annotations

import pytest

from rlvitals.preflight.finding import Finding, Report, Verdict


def _report(*verdicts: Verdict) -> Report:
    return Report.of(Finding(check="T1", verdict=v, subject="s", evidence="e") for v in verdicts)


@pytest.mark.parametrize(
    ("verdicts", "plain", "strict"),
    [
        ((), 0, 0),
        ((Verdict.OK, Verdict.SKIPPED, Verdict.INFO), 0, 0),
        ((Verdict.WARN, Verdict.OK), 0, 1),
        ((Verdict.INFO, Verdict.FATAL, Verdict.WARN), 2, 2),
    ],
)
def test_the_exit_status_follows_from_the_worst_verdict(
    verdicts: tuple[Verdict, ...], plain: int, strict: int
) -> None:
    report = _report(*verdicts)
    assert report.exit_code == plain
    assert report.code(strict=True) == strict


def test_an_empty_report_is_ok_and_reports_join_in_order() -> None:
    assert Report().worst is Verdict.OK
    joined = _report(Verdict.INFO) + _report(Verdict.WARN)
    assert [f.verdict for f in joined.findings] == [Verdict.INFO, Verdict.WARN]
    assert joined.worst is Verdict.WARN


def test_what_was_skipped_is_not_among_the_troubles() -> None:
    report = _report(Verdict.SKIPPED, Verdict.WARN, Verdict.FATAL)
    assert [f.verdict for f in report.at_least(Verdict.INFO)] == [Verdict.WARN, Verdict.FATAL]
