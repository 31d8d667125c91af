from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

import rlvitals
from rlvitals import cli
from rlvitals.settings import Mode
from tests.client.conftest import MakeReporter


def join(monkeypatch: pytest.MonkeyPatch, *points: EntryPoint) -> None:
    monkeypatch.setattr(cli, "entry_points", lambda group: points if group == cli.GROUP else ())


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"rlvitals {rlvitals.__version__}\n"


def test_without_a_command_it_shows_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    out = capsys.readouterr().out
    for name in ("sync", "doctor", "serve"):
        assert name in out


def test_each_command_is_told_with_what_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    told = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    about = {parts[0]: parts[1] for parts in told if len(parts) == 2}
    for name in ("sync", "check", "doctor", *(point.name for point in entry_points(group=cli.GROUP))):
        assert len(about.get(name, "").split()) >= 4, name
        assert "another package" not in about[name], f"{name}: cli.ABOUT says what it is for"


def test_a_command_of_another_package_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def command(argv: list[str]) -> int:
        seen.append(argv)
        return 3

    monkeypatch.setattr(cli, "_seen", command, raising=False)
    join(monkeypatch, EntryPoint(name="hello", value="rlvitals.cli:_seen", group=cli.GROUP))
    assert cli.main(["hello", "--loud", "x"]) == 3
    assert seen == [["--loud", "x"]]


@pytest.mark.parametrize(
    "points", [(), (EntryPoint(name="serve", value="no_such_package.x:main", group=cli.GROUP),)]
)
def test_a_missing_package_is_told_with_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], points: tuple[EntryPoint, ...]
) -> None:
    join(monkeypatch, *points)
    assert cli.main(["serve"]) == 2
    assert "pip install 'rlvitals[server]'" in capsys.readouterr().err


def test_an_unknown_command_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    join(monkeypatch)
    with pytest.raises(SystemExit) as ended:
        cli.main(["dance"])
    assert ended.value.code == 2
    assert "dance" in capsys.readouterr().err


def test_doctor_shows_the_spool_and_no_secret(
    make_reporter: MakeReporter,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    monkeypatch.setenv("RLVITALS_TOKEN", "s3cret")
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setattr("rlvitals.doctor.examine_trainers", lambda env: iter(()))
    living, dead = make_reporter(mode=Mode.OFFLINE, run="living"), make_reporter(mode=Mode.OFFLINE, run="dead")
    living.report(0, {"a": 1.0})
    dead.report(0, {"a": 1.0})
    dead.close()
    assert cli.main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "with a token" in out
    assert "s3cret" not in out
    lines = {line.split("/")[0].strip(): line for line in out.splitlines() if "segments" in line}
    assert "being written" in lines["living"]
    assert "waits for `rlvitals sync`" in lines["dead"]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["sync", "{tmp}/nowhere"], "expected the folder of a spool"),
        (["sync", "{tmp}/file"], "expected the folder of a spool"),
        (["sync", "{tmp}", "--url", "box:8642"], "--url: expected http(s)://"),
    ],
)
def test_sync_refuses_what_a_person_named_and_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], fault: str
) -> None:
    (tmp_path / "file").touch()
    assert cli.main([a.format(tmp=tmp_path) for a in arguments]) == 2
    told = capsys.readouterr()
    assert fault in told.err
    assert not told.out


def test_sync_leaves_folders_that_are_no_journals_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = tmp_path / "project" / "source"
    foreign.mkdir(parents=True)
    (foreign / "0000000000000001.seg").mkdir()
    (foreign / "notes.txt").write_text("mine")
    assert cli.main(["sync", str(tmp_path), "--url", "http://127.0.0.1:9"]) == 0
    assert sorted(p.name for p in foreign.iterdir()) == ["0000000000000001.seg", "notes.txt"]
    assert "0 journals sent" in capsys.readouterr().out


def test_ctrl_c_ends_a_command_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(arguments: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_check", interrupted)
    assert cli.main(["check", "--data", "x"]) == 130
