"""What the page of runs is made of: the view in its address, rows in plain values, beats, deeds on many runs."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest

from rlvitals.contract.alert import AlertState, Severity
from rlvitals.contract.command import CommandKind
from rlvitals.contract.view import Light, RunChoices, RunState, RunView
from rlvitals_dashboard import runs_deeds
from rlvitals_dashboard.api import Forbidden, Refused, Visitor, visitor
from rlvitals_dashboard.runs_bar import runs_bar
from rlvitals_dashboard.runs_beat import OVERLAP, Shown, full_look, look, rows_since
from rlvitals_dashboard.runs_bulk import bulk_bar
from rlvitals_dashboard.runs_empty import TRAINERS, empty_runs, settings
from rlvitals_dashboard.runs_row import LONGEST_TAG, TAGS_SHOWN, row_of
from rlvitals_dashboard.runs_view import RunsView
from tests.dashboard.fake import RUN, START, FakeService
from tests.dashboard.test_components import said
from tests.monitor.planted import an_alert


def a_run(**given: Any) -> RunView:
    return replace(FakeService().runs[RUN], last_seen_at=START, created_at=START, **given)


def test_a_view_comes_back_from_its_address() -> None:
    view = RunsView(
        q="a&b=c", light="amber,red", project="数学 <1>", sort="kl_coef", group="project", fold="a%2Cb"
    )
    address = urlencode(view.said())
    assert RunsView.read(dict(parse_qsl(address))) == view
    assert RunsView().said() == {}
    assert [RunsView(archived="only").is_narrow, RunsView(group="project").is_narrow] == [True, False]


@pytest.mark.parametrize(
    "told",
    [
        {"sort": "-nothing"},
        {"sort": "--name"},
        {"light": "blue,,"},
        {"state": ["red"], "q": 5},
        {"archived": "maybe", "group": "owner"},
    ],
)
def test_half_an_address_is_no_fault(told: dict[str, Any]) -> None:
    assert RunsView.read(told) == RunsView()


def test_a_long_address_asks_for_no_more_than_the_service_takes() -> None:
    asked = RunsView.read({"q": "x" * 9_000, "project": "p" * 9_000, "light": "green,red"}).asked()
    assert (len(asked["q"]), len(asked["project"]), asked["light"]) == (128, 128, ["green", "red"])


def test_nan_both_infinities_and_missing_are_four_things_in_a_row() -> None:
    kinds = (math.nan, math.inf, -math.inf, None)
    assert [row_of(a_run(kl_coef=kind), "/ui/")["kl"] for kind in kinds] == ["NaN", "+Inf", "−Inf", None]
    assert [row_of(a_run(gpu_hours=hours), "/ui/")["gpu"] for hours in (None, 0.04, 12345.6)] == [
        None,
        "0.04",
        "12,346",
    ]
    assert row_of(a_run(steps_per_minute=None, last_step=None), "/ui/")["step"] == "–"


def test_hostile_words_are_pieces_of_text_and_never_longer_than_a_row_bears() -> None:
    run = a_run(
        id="a.b:c",
        name="<b>\u202e" + "x" * 10_000,
        tags=("T" * 10_000, *"abcdef"),
        labels=("\x00",),
        owner="\ud800",
    )
    row = row_of(run, "/ui/")
    assert row["href"] == "/ui/run/a.b%3Ac"
    assert row["name"][:2] == ["<b>", ["[U+202E]", "U+202E"]]
    assert sum(len(p) if isinstance(p, str) else len(p[0]) for p in row["name"]) < 130
    assert row["tags"][0] == ["T" * LONGEST_TAG, f"… {10_000 - LONGEST_TAG:,} more"]
    assert (len(row["tags"]), row["more"]) == (TAGS_SHOWN, 3)
    assert (row["labels"], row["owner"]) == ([[["[U+0000]", "U+0000"]]], [["[U+D800]", "U+D800"]])


def test_a_row_tells_its_alerts_by_severity_and_moves_only_when_its_light_does() -> None:
    calm = row_of(a_run(), "/ui/")
    ill = row_of(a_run(light=Light.RED, firing=4, critical=1, warnings=2), "/ui/")
    assert [alert[2] for alert in ill["alerts"]] == ["1 Critical", "2 Warning", "1 Info"]
    assert (calm["alerts"], calm["state"]) == ([], None)
    later = row_of(replace(a_run(), last_step=9, last_seen_at=START + timedelta(seconds=3)), "/ui/")
    assert (later["place"] == calm["place"], later["print"] == calm["print"]) == (True, False)
    assert ill["place"] != calm["place"]
    assert row_of(a_run(state=RunState.PAUSED), "/ui/")["state"][2] == "Paused"


def test_a_full_look_sends_only_rows_that_are_not_shown_as_they_are() -> None:
    runs, choices = [a_run(), a_run(id="b")], RunChoices(runs=3, archived=1)
    first = full_look(runs, False, choices, RunsView(), {}, "/ui/")
    prints = {row["id"]: row["print"] for row in first["rows"]}
    assert (first["order"], set(prints), first["empty"]) == ([RUN, "b"], {RUN, "b"}, "")
    assert first["summary"] == "2 runs, no alert firing, 1 archived"
    moved = [runs[0], replace(runs[1], last_step=7, firing=1)]
    again = full_look(moved, True, choices, RunsView(), prints, "/ui/")
    assert [row["id"] for row in again["rows"]] == ["b"]
    assert "the first 1,000 of more are shown" in again["summary"]
    assert full_look([], False, choices, RunsView(), {}, "/ui/")["empty"] == "unfit"
    assert full_look([], False, RunChoices(runs=0, archived=0), RunsView(), {}, "/ui/")["empty"] == "none"


def test_between_two_full_looks_only_those_who_spoke_are_asked_for() -> None:
    class Asked:
        since: Any = "never"

        async def listed_runs(self, _wanted: object, *, seen_since: Any = None) -> tuple[list[RunView], bool]:
            self.since = seen_since
            return [a_run()], False

        async def run_choices(self) -> RunChoices:
            return RunChoices(runs=1, archived=0)

    api: Any = Asked()
    told = asyncio.run(look(api, Shown(full=False, since=START.isoformat()), "/ui/"))
    assert (told["full"], api.since) == (False, START - OVERLAP)
    assert asyncio.run(look(api, Shown(full=False, since=""), "/ui/"))["full"]
    assert asyncio.run(look(api, Shown(full=False, since="yesterday"), "/ui/"))["full"]
    assert rows_since([], START.isoformat(), "/ui/")["since"] == START.isoformat()


@pytest.mark.parametrize(
    "data", [None, 5, {}, {"version": "1"}, {"version": 1, "view": 3}, {"version": 1, "prints": []}]
)
def test_a_browser_that_says_nonsense_is_told_all(data: object) -> None:
    assert Shown.read(data) == Shown()


class Deeds:
    """Takes every call, and refuses what is done to the run ``bad``."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    async def mark_run(self, run: str, marks: dict[str, Any]) -> None:
        self._take("mark", run, marks)

    async def silence(self, wish: dict[str, Any]) -> None:
        self._take("silence", wish["match"], wish["lasts_s"])

    async def ask(self, run: str, kind: CommandKind, why: str = "") -> None:
        self._take(kind.value, run, why)

    async def delete_run(self, run: str) -> None:
        self._take("delete", run)

    async def alerts(self, run: str) -> list[Any]:
        given = {"run": run, "severity": Severity.CRITICAL}
        others = (
            an_alert(id="x", acknowledged_by="bob", **given),
            an_alert(id="y", state=AlertState.RESOLVED, **given),
        )
        return [an_alert(id=f"of-{run}", **given), *others]

    async def acknowledge(self, alert: str) -> None:
        self._take("acknowledge", alert)

    def _take(self, *call: Any) -> None:
        self.calls.append(call)
        if "bad" in call:
            raise (Forbidden if call[0] == "delete" else Refused)("Refused", "<b>no</b>")


@pytest.mark.parametrize(
    ("deed", "words", "call", "answer"),
    [
        ("silence", {}, ("silence", ["run=r1"], 3600.0), "2 runs silenced for one hour."),
        ("acknowledge", {}, ("acknowledge", "of-r1"), "2 alerts acknowledged."),
        ("owner", {"owner": " ada "}, ("mark", "r1", {"owner": "ada"}), "2 runs changed."),
        (
            "labels",
            {"add": "a, b，c", "remove": None},
            ("mark", "r1", {"add_labels": ["a", "b", "c"], "remove_labels": []}),
            "2 runs changed.",
        ),
        ("archive", {}, ("mark", "r1", {"archived": True}), "2 runs archived."),
        ("unarchive", {}, ("mark", "r1", {"archived": False}), "2 runs taken back."),
        ("pause", {"why": "odd"}, ("pause", "r1", "odd"), "A pause was asked for on 2 runs."),
        ("delete", {}, ("delete", "r1"), "2 runs deleted."),
    ],
)
def test_a_deed_is_done_to_each_chosen_run_and_told_once(
    deed: str, words: dict[str, object], call: tuple[Any, ...], answer: str
) -> None:
    api: Any = Deeds()
    told = asyncio.run(runs_deeds.carry_out(api, deed, [["r1", "one"], ["r2", ""]], words))
    assert call in api.calls
    assert len(api.calls) == 2
    assert answer in said(told)


def test_what_was_refused_is_told_by_run_beside_what_was_done() -> None:
    api: Any = Deeds()
    told = said(asyncio.run(runs_deeds.carry_out(api, "pause", [["r1", "one"], ["bad", "two"]], {})))
    for words in ("A pause was asked for on 1 run.", "Refused for 1 run:", "<b>no</b>"):
        assert words in told
    assert "Nothing was done." in said(asyncio.run(runs_deeds.carry_out(api, "delete", [["bad", "two"]], {})))
    assert "Choose runs first" in said(asyncio.run(runs_deeds.carry_out(api, "delete", [5, ["x"]], {})))
    assert "Which labels?" in said(asyncio.run(runs_deeds.carry_out(api, "labels", [["r1", ""]], {})))


def test_every_deed_of_the_bar_is_carried_out_and_says_what_will_happen() -> None:
    told = str(bulk_bar("/ui/"))
    for deed in runs_deeds.DEEDS:
        assert f"'deed': '{deed}'" in told
    assert told.count("'type': 'bulk', 'deed'") == len(runs_deeds.DEEDS)
    assert "removed for good" in said(bulk_bar("/ui/"))


def test_the_bar_offers_what_there_is_and_what_the_address_says() -> None:
    choices = RunChoices(runs=1, archived=0, projects=("math",))
    told = str(runs_bar(RunsView(project="gone <p>", light="red"), choices))
    for words in ("gone <p>", "math"):
        assert words in told


def test_the_empty_page_teaches_each_trainer_under_the_address_by_which_one_came() -> None:
    told = said(empty_runs())
    for code, _ in TRAINERS.values():
        assert code.splitlines()[-1] in told
    token = visitor.set(Visitor(host="vitals.example.org:8642", scheme="https"))
    assert "RLVITALS_URL=https://vitals.example.org:8642" in said(empty_runs())
    visitor.reset(token)
    assert settings(Visitor(host="a$(b)`c`\nd;e")).startswith("export RLVITALS_URL=http://abcde\n")
