from __future__ import annotations

from datetime import datetime, timezone

from rlvitals.contract.rulebook import RuleBookView
from rlvitals_dashboard.rule_banner import SHOWN_MAX, tell

LOADED = datetime(2026, 3, 1, 9, 0, tzinfo=timezone.utc)


def book(*problems: str) -> RuleBookView:
    return RuleBookView(rules=93, loaded_at=LOADED, files=("own.yaml",), problems=problems, failed_at=LOADED)


def test_nothing_is_said_while_the_files_are_in_force() -> None:
    assert tell(book()) is None


def test_a_bad_file_is_told_with_its_line_and_with_what_goes_on() -> None:
    said = str(tell(book("own.yaml:5: expected a known metric, got 'kl.k33'")))
    assert "A rule file is not in force" in said
    assert "own.yaml:5: expected a known metric" in said
    assert "The 93 rules loaded at 2026-03-01 09:00 UTC go on judging." in said


def test_many_problems_are_counted_and_not_all_shown() -> None:
    said = str(tell(book(*(f"own.yaml:{line}: expected a list" for line in range(1, SHOWN_MAX + 4)))))
    assert "and 3 more problems" in said
    assert f"own.yaml:{SHOWN_MAX + 1}:" not in said
