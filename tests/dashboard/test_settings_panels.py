"""What the settings' pages say, without a browser."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from plotly.utils import PlotlyJSONEncoder

from rlvitals.contract.access import AccessKind, MeView, Role, SessionView, ShareView, TokenView, UserView
from rlvitals.contract.health import DatabaseView, PartHealth, QueueView, ServiceView
from rlvitals.contract.view import RetentionView
from rlvitals_dashboard import access_people, access_sessions, access_tokens, retention_panel, service_panel
from rlvitals_dashboard.api import ApiError, Forbidden, NotFound, SignInNeeded
from rlvitals_dashboard.failed_page import failed_page, no_such_page
from rlvitals_dashboard.failure_banner import failure_banner
from tests.dashboard.test_components import said

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
EVIL = "<script>alert(1)</script> \u202e"
SHOWN = "<script>alert(1)</script> [U+202E]"
ME = MeView(kind=AccessKind.USER, name="ada", may=("admin",), role=Role.ADMIN)
TOKEN = TokenView(id="t1", name=EVIL, scopes=("ingest:math",), created_at=NOW, valid=True)
USER = UserView(id="u1", name=EVIL, role=Role.VIEWER, created_at=NOW, created_by="ada", invited=False)
SESSION = SessionView(
    id="s1",
    kind=AccessKind.USER,
    name=EVIL,
    agent=EVIL,
    created_at=NOW,
    seen_at=NOW,
    idle_at=NOW + timedelta(hours=1),
    expires_at=NOW + timedelta(days=7),
)
SHARE = ShareView(
    id="h1", run=EVIL, view="?from=3", created_at=NOW, created_by="ada", expires_at=NOW + timedelta(1), open=True
)
SERVICE = ServiceView(
    at=NOW,
    started_at=NOW,
    version="1.0",
    role="all",
    parts=(PartHealth(name="worker", well=False, words=EVIL),),
    database=DatabaseView(kind="sqlite", size_bytes=3 << 30, runs=1200, free_bytes=1 << 30),
    queues=(QueueView(name="messages", waiting=4, since=NOW - timedelta(minutes=5)),),
    stored=1_000_000,
    dropped={"refused": 3},
)


def deeds(component: Any) -> set[str]:
    """The names of all that can be done there."""
    text = json.dumps(component, cls=PlotlyJSONEncoder)
    return {name for name in text.split('"deed": "')[1:] for name in [name.split('"')[0]]}


def test_names_of_others_are_text_with_what_is_invisible_made_visible() -> None:
    assert SHOWN in said(access_tokens.token_table([TOKEN]))
    assert SHOWN in said(access_people.people_table([USER], ME))
    assert SHOWN in said(access_sessions.session_table([SESSION]))
    assert SHOWN in said(access_sessions.share_table([SHARE], "/ui/"))
    assert SHOWN in said(service_panel.service_panels(SERVICE, "/ui/"))
    page = failed_page(NotFound("Not found", f"no run {EVIL}"), "/ui/", "run/x")
    assert SHOWN in said(page)


def test_a_token_that_is_over_can_be_neither_rotated_nor_revoked() -> None:
    assert deeds(access_tokens.token_table([TOKEN])) == {"rotate-token", "revoke-token"}
    assert deeds(access_tokens.token_table([replace(TOKEN, valid=False, revoked_at=NOW)])) == set()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, "Good"),
        ({"expires_at": NOW}, "Ends"),
        ({"valid": False, "expires_at": NOW}, "Over"),
        ({"valid": False, "revoked_at": NOW}, "Over"),
    ],
)
def test_a_token_says_how_it_stands(change: dict[str, Any], word: str) -> None:
    assert access_tokens.token_look(replace(TOKEN, **change)).word == word


def test_nobody_is_offered_to_take_away_their_own_rights() -> None:
    mine = replace(USER, name="ada")
    assert deeds(access_people.people_table([mine], ME)) == set()
    assert "(you)" in said(access_people.people_table([mine], ME))
    assert {"set-role", "invite", "disable-user", "remove-user"} == deeds(access_people.people_table([USER], ME))


def test_somebody_of_the_same_name_who_came_by_a_token_is_somebody_else() -> None:
    by_token = replace(ME, kind=AccessKind.TOKEN, role=None)
    assert "remove-user" in deeds(access_people.people_table([replace(USER, name="ada")], by_token))


def test_who_is_disabled_can_be_let_in_again() -> None:
    assert "enable-user" in deeds(access_people.people_table([replace(USER, disabled_at=NOW)], ME))
    assert access_people.user_look(replace(USER, disabled_at=NOW, invited=True)).word == "Disabled"
    assert access_people.user_look(replace(USER, invited=True)).word == "Invited"


def test_ones_own_browser_is_not_signed_out_by_mistake() -> None:
    assert deeds(access_sessions.session_table([replace(SESSION, current=True)])) == set()
    assert deeds(access_sessions.session_table([SESSION])) == {"end-session"}


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36", "Chrome · Linux"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1", "Safari · iPhone"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/1 Safari/537.36 Edg/1", "Edge · Windows"),
        ("curl/7.88.1", "curl/7.88.1"),
        ("", "–"),
    ],
)
def test_a_browser_is_named_in_few_words(agent: str, words: str) -> None:
    assert access_sessions.browser(agent) == words


def test_a_link_that_is_over_is_said_to_be_and_comes_last() -> None:
    table = said(access_sessions.share_table([replace(SHARE, open=False, run="old"), SHARE], "/ui/"))
    assert table.index("Ends") < table.index("Over")
    assert deeds(access_sessions.share_table([replace(SHARE, open=False)], "/ui/")) == set()


@pytest.mark.parametrize(
    ("days", "words"), [(None, "for ever"), (1.0, "1 day"), (30.0, "30 days"), (1.5, "1.5 d")]
)
def test_how_long_is_said_in_days(days: float | None, words: str) -> None:
    assert retention_panel.kept(days) == words


def test_only_what_was_chosen_can_be_taken_back() -> None:
    chosen = RetentionView(project="math", points_days=30, changed_at=NOW, changed_by="ada")
    assert "take-retention-back" in deeds(retention_panel.retention_table([chosen]))
    assert deeds(retention_panel.retention_table([replace(chosen, inherited=True)])) == set()
    assert deeds(retention_panel.retention_table([RetentionView(project="")])) == set()


def test_the_service_says_what_is_not_well_with_it() -> None:
    words = said(service_panel.service_panels(SERVICE, "/ui/"))
    for word in (
        "Not well",
        "3 GiB",
        "1,200",
        "▲ little",
        "Waits long",
        "1,000,000 records",
        "refused",
        "missing",
    ):
        assert word in words


@pytest.mark.parametrize(
    ("lag", "words"), [(None, "missing"), (math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "−Inf")]
)
def test_a_lag_that_is_no_time_is_said_as_what_it_is(lag: float | None, words: str) -> None:
    assert words in said(service_panel.service_panels(replace(SERVICE, lag_s=lag), "/ui/"))


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 B"), (1023, "1,023 B"), (1 << 20, "1 MiB"), (5 << 40, "5 TiB"), (None, "missing")]
)
def test_a_size_is_said_in_its_largest_unit(size: int | None, words: str) -> None:
    assert service_panel.size(size) == words


def test_what_waits_for_people_is_never_called_late() -> None:
    old = QueueView(name="decisions", waiting=1, since=NOW - timedelta(days=1))
    assert service_panel.queue_look(old, NOW).word == "Waits"
    assert service_panel.queue_look(replace(old, waiting=0), NOW).word == "Empty"


@pytest.mark.parametrize(
    ("error", "place", "words", "heals"),
    [
        (SignInNeeded("Sign in", ""), "", "Sign in first", True),
        (Forbidden("No", "lacks the scope 'admin'"), "settings/people", "lacks the scope", True),
        (NotFound("Not found", "no run 'x'"), "run/x", "no run 'x'", True),
        (NotFound("Not found", "no command"), "control/command/x", "no command", False),
        (ApiError("The database does not answer", ""), "", "The database does not answer", True),
    ],
)
def test_a_page_that_cannot_be_made_says_why_what_to_do_and_whether_it_heals(
    error: ApiError, place: str, words: str, heals: bool
) -> None:
    page = failed_page(error, "/ui/", place)
    assert words in said(page)
    assert ("heals" in page.className.split()) is heals
    assert "/ui/" in json.dumps(page, cls=PlotlyJSONEncoder)


def test_an_address_that_was_cut_off_leads_on() -> None:
    assert "cut off" in said(no_such_page("/ui/"))


def test_all_states_of_the_connection_are_in_the_page_beforehand() -> None:
    names = {state.className.split()[-1] for state in failure_banner("/ui/").children}
    assert names == {"dead", "trouble", "over", "refused", "gone", "lost"}
