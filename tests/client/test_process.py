"""Real processes: killed, forked, ended, imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rlvitals import cli, settings
from rlvitals.contract.report import Event, StepReport
from rlvitals.spool import journals, read_acked
from tests.client.service import Service


def run_python(code: str, env: dict[str, str], **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **env, **more}, capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def env(tmp_path: Path, service: Service) -> dict[str, str]:
    return {"RLVITALS_DIR": str(tmp_path / "spool"), "RLVITALS_URL": service.url, "RLVITALS_RUN_ID": "killed"}


KILLED = """
import os, signal, rlvitals
vitals = rlvitals.init()
for step in range({steps}):
    vitals.report(step, {{"loss": step / 2, "nan": float("nan")}})
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_right_after_report_loses_nothing_and_sync_delivers_it(
    service: Service, env: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = run_python(KILLED.format(steps=1000), env, RLVITALS_URL="http://127.0.0.1:9")
    assert ended.returncode == -signal.SIGKILL
    assert service.requests == 0
    assert cli.main(["sync", str(tmp_path / "spool"), "--url", service.url]) == 0
    assert [s.step for s in service.steps()] == list(range(1000))
    assert service.steps()[-1].values["loss"] == 499.5
    assert "1 journals sent" in capsys.readouterr().out
    assert cli.main(["sync", str(tmp_path / "spool"), "--url", service.url]) == 0
    assert "0 journals sent" in capsys.readouterr().out


def test_a_kill_in_mid_upload_doubles_nothing(service: Service, env: dict[str, str], tmp_path: Path) -> None:
    assert run_python(KILLED.format(steps=3000), env).returncode == -signal.SIGKILL
    before = len(service.steps())
    assert cli.sync(tmp_path / "spool", settings.load(url=service.url)) == 0
    assert before <= 3000
    assert [s.step for s in service.steps()] == list(range(3000))


def test_sync_without_a_service_keeps_all_and_says_so(
    env: dict[str, str],
    tmp_path: Path,
    dead_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rlvitals.sender.SYNC_TRIES_MAX", 2)
    run_python(KILLED.format(steps=3), env)
    chosen = settings.load(url=dead_url)
    assert cli.sync(tmp_path / "spool", chosen) == 1
    out = capsys.readouterr()
    assert "0 journals sent" in out.out
    assert "1 left" in out.out
    assert "refused" in out.err.lower()
    assert not any(read_acked(folder).complete for folder in journals(tmp_path / "spool"))


FORKED = """
import os, sys, rlvitals
vitals = rlvitals.init()
for step in range(5):
    vitals.report(step, {"parent": 1.0})
child = os.fork()
if child == 0:
    for step in range(5, 8):
        vitals.report(step, {"child": 1.0})
    vitals.close()
    os._exit(0)
os.waitpid(child, 0)
for step in range(5, 10):
    vitals.report(step, {"parent": 1.0})
silent = os.fork()
if silent == 0:
    sys.exit(0)
os.waitpid(silent, 0)
assert vitals.flush(20)
print(vitals.attempt)
"""


def test_a_forked_child_reports_as_an_attempt_of_its_own_and_nothing_is_sent_twice(
    service: Service, env: dict[str, str]
) -> None:
    ended = run_python(FORKED, env, RLVITALS_EXIT_FLUSH_S="20")
    assert ended.returncode == 0, ended.stderr
    parent = ended.stdout.split()[-1]
    attempts = {b.attempt for b in service.batches}
    assert len(attempts) == 2
    (child,) = attempts - {parent}
    assert [s.step for s in service.steps(parent)] == list(range(10))
    assert [s.step for s in service.steps(child)] == [5, 6, 7]
    assert service.duplicates == 0
    reasons = sorted(
        str(e.payload["reason"]) for e in service.of_kind(Event) if isinstance(e, Event) and "reason" in e.payload
    )
    assert reasons == ["fork", "start"]


@pytest.mark.parametrize(("ending", "phase"), [("", "finished"), ("raise ValueError('boom')", "failed")])
def test_a_script_that_ends_without_close_says_how_and_sends_all(
    service: Service, env: dict[str, str], ending: str, phase: str
) -> None:
    code = f"import rlvitals\nvitals = rlvitals.init()\nvitals.report(1, {{'a': 1.0}})\n{ending}"
    ended = run_python(code, env, RLVITALS_EXIT_FLUSH_S="20")
    assert ("boom" in ended.stderr) is bool(ending)
    assert [s.step for s in service.steps()] == [1]
    (last,) = [e for e in service.of_kind(Event) if isinstance(e, Event) and "phase" in e.payload]
    assert last.payload["phase"] == phase


def test_without_a_server_a_script_ends_at_once(env: dict[str, str]) -> None:
    code = "import rlvitals\nvitals = rlvitals.init()\nvitals.report(1, {'a': 1.0})"
    ended = run_python(code, env, RLVITALS_URL="http://127.0.0.1:9", RLVITALS_EXIT_FLUSH_S="50")
    assert ended.returncode == 0
    assert "rlvitals sync" in ended.stderr


def test_an_import_loads_nothing_of_others() -> None:
    code = """
import sys
before = set(sys.modules)
import rlvitals
rlvitals.init(mode="disabled").report(0, {"a": 1.0})
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(loaded - set(sys.stdlib_module_names)))
"""
    ended = run_python(code, {})
    assert ended.stdout == "['rlvitals']\n", ended.stderr


def test_a_bare_import_loads_neither_the_reporter_nor_the_network() -> None:
    code = (
        "import sys, rlvitals\nprint(sorted(m for m in sys.modules if m.startswith(('rlvitals.', 'http', 'ssl'))))"
    )
    told = run_python(code, {}).stdout
    assert told == "['rlvitals.reporting']\n", "which makes our name known to transformers, and nothing else"


def test_step_reports_are_what_the_service_got(service: Service, env: dict[str, str]) -> None:
    code = "import rlvitals\nv = rlvitals.init(name='n', config={'beta': 0.1})\nv.report(1, {'a': 1.0})\nv.close()"
    run_python(code, env, RLVITALS_EXIT_FLUSH_S="20")
    assert isinstance(service.of_kind(StepReport)[0], StepReport)
    assert (service.batches[0].run.id, service.batches[0].run.config) == ("killed", {"beta": 0.1})
