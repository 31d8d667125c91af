from __future__ import annotations

from datetime import datetime, timezone

from rlvitals.contract.channelbook import ChannelBookView
from rlvitals.contract.health import HealthView, PartHealth
from rlvitals.contract.rulebook import RuleBookView
from rlvitals_dashboard.problem_banner import SHOWN_MAX, tell_channels, tell_health, tell_rules

LOADED = datetime(2026, 3, 1, 9, 0, tzinfo=timezone.utc)


def book(*problems: str) -> RuleBookView:
    return RuleBookView(rules=93, loaded_at=LOADED, files=("own.yaml",), problems=problems, failed_at=LOADED)


def test_nothing_is_said_while_the_files_are_in_force() -> None:
    assert tell_rules(book()) is None


def test_a_bad_file_is_told_with_its_line_and_with_what_goes_on() -> None:
    said = str(tell_rules(book("own.yaml:5: expected a known metric, got 'kl.k33'")))
    assert "A rule file is not in force" in said
    assert "own.yaml:5: expected a known metric" in said
    assert "The 93 rules loaded at 2026-03-01 09:00 UTC go on judging." in said


def test_many_problems_are_counted_and_not_all_shown() -> None:
    said = str(tell_rules(book(*(f"own.yaml:{line}: expected a list" for line in range(1, SHOWN_MAX + 4)))))
    assert "and 3 more problems" in said
    assert f"own.yaml:{SHOWN_MAX + 1}:" not in said


def test_a_channel_that_is_not_in_force_is_told_and_hostile_text_is_only_text() -> None:
    view = ChannelBookView(channels=2, loaded_at=LOADED, problems=("c.yaml:3: expected a kind, got '<b>\u202e'",))
    said = str(tell_channels(view))
    assert "A channel is not in force as it is written" in said
    assert "c.yaml:3: expected a kind" in said
    assert "The 2 channels in force go on" in said
    assert "\u202e" not in said
    assert tell_channels(ChannelBookView(channels=2, loaded_at=LOADED)) is None


def test_a_part_that_is_not_well_is_told() -> None:
    ill = PartHealth(name="worker", well=False, words="routing has failed for 61 s")
    well = PartHealth(name="database", well=True)
    said = str(tell_health(HealthView(at=LOADED, well=False, parts=(well, ill))))
    assert "worker: routing has failed for 61 s" in said
    assert "database" not in said
    assert tell_health(HealthView(at=LOADED, well=True, parts=(well,))) is None
