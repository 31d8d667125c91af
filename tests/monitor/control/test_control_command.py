"""``rlvitals control policy`` and ``rlvitals control audit`` on the service's own store."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from rlvitals.contract.view import AuditView
from rlvitals_monitor.control.command import main
from rlvitals_monitor.control.export import Csv, JsonLines
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.tables import audit
from tests.monitor.planted import NOW

HOSTILE = '=HYPERLINK("http://evil")\x1b[31m\u202e,"\n'
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def own(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store that the command finds by itself."""
    monkeypatch.setenv("RLVITALS_DATABASE_URL", database_url)
    assert Settings().store_url == database_url
    store = Store(database_url)
    with store.begin() as conn:
        append_audit(conn, at=NOW, who="ada", what="approved", detail=HOSTILE, run="r1")
        append_audit(conn, at=NOW, who="ben", what="denied", run="r2")
    yield store
    store.close()


def test_a_policy_is_chosen_shown_and_taken_back(own: Store, capsys: Capture) -> None:
    assert main(["policy", "set", "run", "r1", "observe"]) == 0
    assert main(["policy", "list"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1].split()[:3] == ["run", "r1", "observe"]
    assert "(command line)" in shown[-1] or "command line" in shown[-1]
    assert main(["policy", "unset", "run", "r1"]) == 0
    assert "r1" not in capsys.readouterr().out
    assert main(["policy", "unset", "run", "r1"]) == 2
    assert "no policy was chosen for the run 'r1'" in capsys.readouterr().err


def test_a_rule_that_is_mistyped_is_refused_and_a_run_that_is_not_known_is_told(
    own: Store, capsys: Capture
) -> None:
    assert main(["policy", "set", "rule", "kl_pull_dominate", "auto"]) == 2
    assert "no rule 'kl_pull_dominate'; the nearest names are kl_pull_dominates" in capsys.readouterr().err
    assert main(["policy", "set", "rule", "kl_pull_dominates", "auto"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["policy", "set", "run", "tomorrow", "auto"]) == 0
    assert "no run 'tomorrow' has been heard of yet" in capsys.readouterr().err


@pytest.mark.parametrize("form", [[], ["--jsonl"], ["--csv"]])
def test_an_audit_that_holds_nothing_of_what_was_asked_for_says_so(
    own: Store, capsys: Capture, form: list[str]
) -> None:
    assert main(["audit", "--run", "r9", "--what", "denied\x1b", *form]) == 0
    told = capsys.readouterr()
    assert told.out == "" or form == ["--csv"]
    assert "the audit has no line with run 'r9', what 'denied" in told.err
    assert "\x1b" not in told.err


def test_the_audit_is_printed_with_nothing_that_steers_a_terminal(own: Store, capsys: Capture) -> None:
    assert main(["audit", "--run", "r1"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_json_lines_are_one_object_a_line(own: Store, capsys: Capture) -> None:
    assert main(["audit", "--jsonl"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["number"], line["who"]) for line in lines] == [(1, "ada"), (2, "ben")]
    assert lines[0]["detail"] == HOSTILE


def test_a_spreadsheet_takes_no_cell_for_a_formula(own: Store, capsys: Capture) -> None:
    assert main(["audit", "--csv", "--who", "ada"]) == 0
    (line,) = csv.DictReader(io.StringIO(capsys.readouterr().out, newline=""))
    assert line["detail"] == "'" + HOSTILE


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_every_start_of_a_formula_is_made_plain(start: str) -> None:
    line = AuditView(at=NOW, run="", command_id="", who=f"{start}1", what="w")
    assert f"'{start}1" in Csv().lines([line])
    assert json.loads(JsonLines().lines([line]))["who"] == f"{start}1"


def test_a_whole_chain_is_told_with_its_head_and_a_broken_one_with_its_line(own: Store, capsys: Capture) -> None:
    assert main(["audit", "--verify"]) == 0
    said, head = capsys.readouterr().out.splitlines()
    assert said == "the chain holds: 2 lines"
    assert main(["audit", "--verify", "--head", head.split()[1]]) == 0
    assert main(["audit", "--verify", "--head", "0" * 64]) == 1
    capsys.readouterr()
    with own.begin() as conn:
        conn.execute(update(audit).where(audit.c.number == 1).values(who="mallory"))
    assert main(["audit", "--verify"]) == 1
    assert "BROKEN, line 1" in capsys.readouterr().err


def test_without_a_store_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("RLVITALS_DATABASE_URL", f"sqlite:///{tmp_path}/none.db")
    assert main(["audit"]) == 2
    assert "there is no store" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [], "a look makes no file"
