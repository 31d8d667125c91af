"""How OpenRLHF is started under watch: one wrapper behind Ray's decorator, the command line untouched."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from rlvitals.integrations.openrlhf import controller, entry, generator, launch, support


class Behind:
    def fit(self, global_step: int = 0) -> str:
        return f"trained from {global_step}"


def put_openrlhf(monkeypatch: pytest.MonkeyPatch) -> type:
    """Modules with the names that we patch; the class is made anew each time."""
    behind = type("PPOTrainer", (Behind,), {"fit": lambda self, global_step=0: Behind.fit(self, global_step)})
    module = ModuleType("openrlhf.trainer.ppo_trainer")
    module.PPOTrainer = SimpleNamespace(__ray_metadata__=SimpleNamespace(modified_class=behind))  # type: ignore[attr-defined]
    for name in ("openrlhf", "openrlhf.trainer"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "openrlhf.trainer.ppo_trainer", module)
    monkeypatch.setitem(sys.modules, "openrlhf.trainer.ppo_trainer_async", ModuleType("asynchronous"))
    return behind


def test_the_class_behind_the_decorator_is_watched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    behind, seen = put_openrlhf(monkeypatch), list[Any]()
    monkeypatch.setattr(controller, "begin", lambda trainer, environment: seen.append(environment))
    for _ in range(2):
        assert entry.patch({"RLVITALS_PROJECT": "p"}) == ("PPOTrainer.fit",)
    assert behind().fit(3) == "trained from 3"
    assert seen == [{"RLVITALS_PROJECT": "p"}]


def test_where_we_are_not_installed_the_controller_trains_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    behind = put_openrlhf(monkeypatch)
    entry.patch({})
    monkeypatch.setitem(sys.modules, "rlvitals.integrations.openrlhf.controller", None)
    assert behind().fit(3) == "trained from 3"
    assert "not monitored" in caplog.text


def test_without_openrlhf_nothing_is_patched_and_it_is_said(caplog: pytest.LogCaptureFixture) -> None:
    assert entry.patch({}) == ()
    assert "not monitored" in caplog.text
    rows = support.hooks().rows()
    assert {row["state"] for row in rows} == {"absent"}
    assert all(row["why"] for row in rows)


def test_the_command_line_reaches_the_script_and_the_module_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launch, "patch", lambda: ())
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "job_of_mine.py").write_text("import sys\nif __name__ == '__main__': print(sys.argv[1:])\n")
    script = str(tmp_path / "job_of_mine.py")
    for told in (["-m", "job_of_mine"], [script], ["openrlhf", "-m", "job_of_mine"]):
        assert launch.main([*told, "--train.seed", "3"]) == 0
    assert capsys.readouterr().out.splitlines() == ["['--train.seed', '3']"] * 3


@pytest.mark.parametrize("told", [[], ["-m"], ["--help"]])
def test_a_command_line_that_names_nothing_to_run_is_told_how(
    told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert launch.main(told) == 2
    assert "usage" in capsys.readouterr().err


def test_an_asynchronous_trainer_tells_its_generator_to_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(entry, "patch", lambda environment: told.append(environment))
    handle = SimpleNamespace(__ray_call__=SimpleNamespace(remote=told.append))
    generator.introduce({"RLVITALS_HOME": "h"})
    generator.introduce({"RLVITALS_HOME": "h"}, SimpleNamespace(generator_actor=handle))
    assert told == [{"RLVITALS_HOME": "h"}, generator.listen]
