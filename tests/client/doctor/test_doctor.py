"""What the doctor says of an environment and of a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from email.utils import formatdate
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rlvitals import cli, doctor
from rlvitals.contract.hooks import HookState
from rlvitals.doctor import service, trainers
from rlvitals.doctor.finding import Finding, State, as_json, as_text, exit_status
from rlvitals.integrations.hooks import HookTable
from rlvitals.settings import Mode, Settings
from tests.client.conftest import MakeReporter
from tests.client.service import Reply, Service

NOW_S = 1_790_000_000.0


def only(findings: Any) -> Finding:
    (found,) = findings
    assert isinstance(found, Finding)
    return found


# the service


def asked(status: int = 422, *, date_s: float | None = NOW_S) -> list[Finding]:
    headers = {} if date_s is None else {"date": formatdate(date_s, usegmt=True)}

    def ask(body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        return status, headers, b""

    settings = Settings(url="http://box:8642", token="s3cret")
    return list(service.examine_service(settings, ask=ask, clock=lambda: NOW_S))


def test_a_service_that_takes_the_token_and_has_our_time_is_well() -> None:
    assert [f.state for f in asked()] == [State.OK, State.OK]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "refuses the token (401 of http://box:8642)"),
        (403, "may not report (403)"),
        (302, "redirects elsewhere"),
        (503, "not ready (HTTP 503)"),
        (404, "is no RL Vitals service"),
        (200, "is no RL Vitals service"),
    ],
)
def test_every_other_answer_is_told_with_what_to_do(status: int, words: str) -> None:
    found = asked(status)[0]
    assert found.state is State.WRONG
    assert words in found.told
    assert found.fix
    assert "s3cret" not in as_text([found], "")


def test_a_missing_token_is_told_from_a_wrong_one() -> None:
    settings = Settings(url="http://box:8642")
    found = list(service.examine_service(settings, ask=lambda body: (401, {}, b""), clock=lambda: NOW_S))
    assert "wants a token, none is set" in found[0].told


@pytest.mark.parametrize(
    ("service_s", "state", "words"),
    [
        (NOW_S - 29, State.OK, "agree"),
        (NOW_S - 120, State.WRONG, "120 s ahead of"),
        (NOW_S + 3600, State.WRONG, "behind"),
        (None, State.NOTE, "not measured"),
    ],
)
def test_clocks_that_differ_are_told(service_s: float | None, state: State, words: str) -> None:
    skew = asked(date_s=service_s)[1]
    assert (skew.state, words in skew.told) == (state, True)


@pytest.mark.parametrize("mode", [Mode.OFFLINE, Mode.DISABLED])
def test_a_client_that_sends_nothing_asks_nobody(mode: Mode) -> None:
    def ask(body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        raise AssertionError("it was asked")

    found = only(service.examine_service(Settings(mode=mode), ask=ask))
    assert (found.state, mode.value in found.told) == (State.NOTE, True)


def test_asking_a_real_service_stores_nothing(service: Service) -> None:
    from rlvitals.doctor.service import examine_service

    service.always = Reply(status=401)
    found = list(examine_service(Settings(url=service.url)))
    assert found[0].state is State.WRONG
    assert service.requests == 1
    assert service.rows == {}
    silent = list(examine_service(Settings(url="http://127.0.0.1:9")))
    assert "does not answer" in only(silent).told


# trainers


@pytest.fixture
def fake_trainer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[Finding]]:
    """Makes an installed trainer with a support module of ours whose table is given; examines it."""

    def examine(table: HookTable | BaseException, versions: tuple[str, ...] = ("1.0",)) -> list[Finding]:
        (tmp_path / "faketrainer").mkdir()
        (tmp_path / "faketrainer" / "__init__.py").touch()
        monkeypatch.syspath_prepend(str(tmp_path))
        support = ModuleType("rlvitals.integrations.faketrainer.support")

        def hooks() -> HookTable:
            print("a banner of the trainer")
            if isinstance(table, BaseException):
                raise table
            return table

        support.hooks, support.VERSIONS = hooks, versions  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "rlvitals.integrations.faketrainer", ModuleType("faketrainer"))
        monkeypatch.setitem(sys.modules, "rlvitals.integrations.faketrainer.support", support)
        return list(trainers.examine_trainers({}, names=["faketrainer", "not_installed_anywhere"]))

    return examine


def table(version: str = "1.0", **absent: str) -> HookTable:
    made = HookTable("faketrainer", version)
    made.add("batch", "Trainer.step", "rewards", patched=True)
    for name, why in absent.items():
        made.add(name, f"Trainer.{name}", f"what {name} gives", patched=False, why=why)
    return made


def test_an_installed_trainer_has_its_hooks_looked_at_and_its_chatter_kept_off_the_report(
    fake_trainer: Callable[..., list[Finding]], capsys: pytest.CaptureFixture[str]
) -> None:
    found = only(fake_trainer(table()))
    assert (found.state, found.told) == (State.OK, "faketrainer 1.0, tried: 1 of 1 hooks found")
    assert found.rows == ("found   batch  Trainer.step",)
    assert capsys.readouterr().out == ""


def test_an_absent_hook_is_known_in_a_tried_release_and_a_finding_in_another(
    fake_trainer: Callable[..., list[Finding]],
) -> None:
    found = only(fake_trainer(table(loss="the worker has none")))
    assert found.state is State.OK
    assert found.rows[1] == "ABSENT  loss  Trainer.loss: the worker has none; missing: what loss gives"
    untried = trainers.judge("faketrainer", trainers._seen(table("9.9", loss="renamed")), ("1.0",), "9.9")
    assert untried.state is State.WRONG
    assert "untried (tried: 1.0)" in untried.told
    whole = trainers.judge("faketrainer", trainers._seen(table("9.9")), ("1.0",), "9.9")
    assert whole.state is State.NOTE


def test_a_trainer_where_nothing_is_found_is_wrong_in_any_release() -> None:
    empty = HookTable("faketrainer", "1.0")
    empty.add("batch", "Trainer.step", "rewards", patched=False, why="no such method")
    assert trainers.judge("faketrainer", trainers._seen(empty), ("1.0",), "").state is State.WRONG


def test_a_trainer_that_ends_the_interpreter_ends_not_the_doctor(
    fake_trainer: Callable[..., list[Finding]],
) -> None:
    found = only(fake_trainer(SystemExit("no GPU here")))
    assert found.state is State.NOTE
    assert "can't be imported here" in found.told
    assert "it ends the interpreter (no GPU here)" in found.told


def test_a_trainer_that_cannot_be_imported_is_told_with_its_error(
    fake_trainer: Callable[..., list[Finding]],
) -> None:
    found = only(fake_trainer(ImportError("libcudart.so.12 is missing")))
    assert found.state is State.NOTE, "a job of it would not start, which nobody overlooks"
    assert "ImportError: libcudart.so.12 is missing" in found.told


def test_a_table_of_nothing_but_errors_of_import_is_told_once() -> None:
    broken = HookTable("faketrainer", "1.0")
    for name in ("a", "b"):
        broken.add(name, f"T.{name}", "x", patched=False, why="ModuleNotFoundError: No module named 'vllm'")
    found = trainers.judge("faketrainer", trainers._seen(broken), ("1.0",), "1.0")
    assert (found.state, found.rows) == (State.NOTE, ())
    assert found.told.count("No module named 'vllm'") == 1


def test_no_trainer_at_all_is_no_fault() -> None:
    assert only(trainers.examine_trainers({}, names=["not_installed_anywhere"])).state is State.NOTE


OURS = EntryPoint(name="rlvitals", value="rlvitals.integrations.verl", group=trainers.PLUGINS)
MODULES = {"VERL_USE_EXTERNAL_MODULES": "other,rlvitals.integrations.verl"}
HOOK = {"RAY_RUNTIME_ENV_HOOK": "rlvitals.integrations.verl.ray_hook.hook"}


@pytest.mark.parametrize(
    ("release", "env", "points", "state"),
    [
        ("0.9.1", {}, [OURS], State.OK),
        ("0.9.1", {"VERL_USE_EXTERNAL_PLUGINS": "none"}, [OURS], State.WRONG),
        ("0.9.1", {"VERL_USE_EXTERNAL_PLUGINS": "other, rlvitals"}, [OURS], State.OK),
        ("0.9.1", {"VERL_USE_EXTERNAL_PLUGINS": "other"}, [OURS], State.WRONG),
        ("0.9.1", {}, [], State.WRONG),
        ("0.9.1", MODULES, [], State.OK),
        ("0.8.0", {}, [OURS], State.WRONG),
        ("0.8.0", MODULES, [], State.OK),
        ("0.8.0", {"VERL_USE_EXTERNAL_MODULES": "rlvitals.integrations.verlx"}, [], State.WRONG),
        ("0.4.1", MODULES, [OURS], State.WRONG),
        ("0.4.1", HOOK, [], State.OK),
        ("0.4.1", {"RAY_RUNTIME_ENV_HOOK": "somebody.elses"}, [], State.WRONG),
        ("", {}, [OURS], State.OK),
    ],
)
def test_a_plug_in_that_verl_would_not_load_is_told_before_the_job_runs(
    release: str, env: dict[str, str], points: list[EntryPoint], state: State
) -> None:
    found = trainers._verl_loads_us(release, env, points)
    assert found.state is state
    assert bool(found.fix) is (state is State.WRONG)


# a run


def test_the_hooks_of_a_run_are_read_from_its_journal(
    make_reporter: MakeReporter,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    reporter, hooks = make_reporter(mode=Mode.OFFLINE, run="mine"), table(loss="the worker has none")
    hooks.tell(reporter)
    for step in range(1, 4):
        hooks.saw("batch")
        reporter.report(step, {"a": 1.0})
        hooks.step_ends(reporter, step)
    assert cli.main(["doctor", "mine"]) == 0
    out = capsys.readouterr().out
    assert "being written, step 3" in out
    assert "1 of 2 hooks of faketrainer 1.0 see" in out
    assert "sees    batch  Trainer.step, seen 1 time" in out
    assert "ABSENT  loss  Trainer.loss: the worker has none; missing: what loss gives" in out
    reporter.close()
    assert cli.main(["doctor", "mine", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["findings"][0]["hooks"]["hooks"][0]["state"] == HookState.SEEN.value


@pytest.mark.parametrize("fails", [True, False])
def test_a_run_whose_hooks_fail_or_were_never_called_is_wrong(
    make_reporter: MakeReporter,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    fails: bool,
) -> None:
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    reporter, hooks = make_reporter(mode=Mode.OFFLINE, run="mine"), table()
    hooks.tell(reporter)
    if fails:
        hooks.failed("batch", KeyError("old\x1b[31m"))
    assert cli.main(["doctor", "mine"]) == int(fails), "a living run may still wait for its first step"
    reporter.close()
    assert cli.main(["doctor", "mine"]) == 1
    out = capsys.readouterr().out
    assert ("FAILS   batch  Trainer.step: KeyError: 'old" if fails else "0 of 1 hooks") in out
    assert "\x1b" not in out


def test_a_run_that_is_not_there_is_told_with_those_that_are(
    make_reporter: MakeReporter,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    make_reporter(mode=Mode.OFFLINE, run="mine").report(1, {"a": 1.0})
    assert cli.main(["doctor", "../other"]) == 1
    assert "newest there: mine" in capsys.readouterr().out
    assert cli.main(["doctor", "mine"]) == 0
    assert "tells of no hooks" in capsys.readouterr().out


# the report


def test_only_what_is_wrong_makes_the_exit_status_one() -> None:
    notes = [Finding(section="a", state=state, told="x") for state in (State.OK, State.NOTE)]
    assert exit_status(notes) == 0
    assert exit_status([*notes, Finding(section="b", state=State.WRONG, told="x")]) == 1
    assert as_text(notes, "head").endswith("all well\n")


def test_words_of_others_steer_no_terminal_and_stay_ascii_in_json() -> None:
    hostile = Finding(section="a", state=State.OK, told="\x1b]0;x\x07\u202e", rows=("\x9b31m",), fix="\r")
    text = as_text([hostile], "head")
    assert not [char for char in text if not char.isprintable() and char != "\n"]
    assert as_json([hostile], "1").isascii()


def test_a_spool_that_cannot_be_written_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = list(doctor.examine_settings(Settings(spool=tmp_path / "file" / "spool")))
    assert found[-1].state is State.WRONG
    assert "can't be written" in found[-1].told
