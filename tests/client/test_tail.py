"""The sidecar over real files that grow, in a spool of the test's own."""

from __future__ import annotations

import gzip
import json
import math
import os
from pathlib import Path

import pytest

from rlvitals.contract.report import StepReport
from rlvitals.follow import Follower
from rlvitals.formats.row import BadLine
from rlvitals.reporter import Reporter
from rlvitals.settings import Mode
from rlvitals.spool import journals
from rlvitals.tail import IDLE_S, Tail, files, follow, main
from tests.client.conftest import MakeReporter


@pytest.fixture
def reporter(make_reporter: MakeReporter) -> Reporter:
    return make_reporter(mode=Mode.OFFLINE)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def steps(folder: Path) -> list[StepReport]:
    found: list[StepReport] = []
    for journal in journals(folder):
        follower = Follower(journal)
        found += [item.record for item in follower.read(10_000) if isinstance(item.record, StepReport)]
        follower.close()
    return found


def test_a_growing_console_log_is_reported_step_by_step(reporter: Reporter, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("starting\nstep:1 - actor/grad_norm:0.5 - mine:1\nstep:2 - actor/gr")
    tail = Tail([log], reporter)
    assert tail.poll() == 0, "the first record may go on in the next line"
    with log.open("a") as file:
        file.write("ad_norm:nan - mine:2\nstep:3 - actor/grad_norm:1 - mine:3\n")
    tail.poll()
    tail.finish()
    found = steps(reporter.settings.spool)
    assert [step.step for step in found] == [1, 2, 3]
    assert found[0].values["gradient.norm"] == 0.5
    assert math.isnan(found[1].values["gradient.norm"])
    assert found[2].values["mine"] == 3.0


def test_a_quiet_log_gives_up_what_it_held_back(reporter: Reporter, tmp_path: Path) -> None:
    log, clock = tmp_path / "run.log", Clock()
    log.write_text("step:1 - actor/grad_norm:0.5\n")
    tail = Tail([log], reporter, clock=clock)
    assert tail.poll() == 0
    clock.now = IDLE_S
    assert tail.poll() == 1
    assert tail.finish() == 0


def test_a_rewritten_state_file_gives_only_what_is_new(reporter: Reporter, tmp_path: Path) -> None:
    state = tmp_path / "trainer_state.json"
    history: list[dict[str, object]] = [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 2.0}]
    state.write_text(json.dumps({"log_history": history}))
    tail = Tail([state], reporter)
    tail.poll()
    history.append({"step": 3, "loss": None})
    state.write_text(json.dumps({"log_history": history}))
    os.utime(state, ns=(1, 1))
    tail.poll()
    tail.finish()
    found = steps(reporter.settings.spool)
    assert [step.step for step in found] == [1, 2, 3]
    assert found[2].missing == {"policy.loss": "the trainer logged null"}


def test_a_metric_that_a_trainer_only_seems_to_log_is_missing_with_that_reason(
    reporter: Reporter, tmp_path: Path
) -> None:
    log = tmp_path / "run.log"
    log.write_text("step:1 - response_length/clip_ratio:1.0 - training/num_turns/mean:2.0\n")
    tail = Tail([log], reporter)
    tail.poll()
    tail.finish()
    (step,) = steps(reporter.settings.spool)
    assert step.values["response_length/clip_ratio"] == 1.0
    assert "longest answer of its batch" in step.missing["length.truncation_rate"]


def test_a_log_that_begins_again_is_read_again(reporter: Reporter, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("step:5 - a/b:0.5\nstep:6 - a/b:0.5\n" + "talk\n" * 20)
    tail = Tail([log], reporter)
    tail.poll()
    log.write_text("step:1 - a/b:0.7\nstep:2 - a/b:0.7\n")
    tail.poll()
    tail.finish()
    assert sorted(step.step for step in steps(reporter.settings.spool)) == [1, 2, 5, 6]


def test_a_missing_file_and_a_broken_line_are_told_and_the_rest_is_read(
    reporter: Reporter, tmp_path: Path
) -> None:
    log = tmp_path / "run.log"
    log.write_text("{'loss': 1.0, 'kl' 2}\n{'loss': 1.0, 'kl': 2}\n")
    tail = Tail([tmp_path / "absent", log], reporter)
    assert tail.poll() + tail.finish() == 1
    assert [type(bad) for bad in tail.bad] == [BadLine, BadLine]
    assert "absent" in tail.bad[0].reason
    assert tail.bad[1].line == 1


def test_logs_are_found_in_a_folder(tmp_path: Path) -> None:
    for name in ("a.log", "b.bin", "c/events.out.tfevents.1", "d/trainer_state.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert {path.name for path in files([tmp_path])} == {"a.log", "events.out.tfevents.1", "trainer_state.json"}


def test_the_command_reads_a_log_once_and_says_what_it_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    log = tmp_path / "run.log"
    log.write_text("{'loss': 1.0, 'reward': 2, 'mine': 3}\n{'loss': nan, 'reward': 2, 'mine': 3}\n")
    assert main([str(log), "--once", "--every", "10"]) == 0
    said = capsys.readouterr().out
    assert "2 steps reported" in said
    assert "mine" in said
    assert [step.step for step in steps(tmp_path / "spool")] == [1, 11]
    assert main([str(tmp_path / "absent")]) == 2


def test_a_growing_log_in_utf_16_is_read(reporter: Reporter, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    first, rest = "step:1 - actor/grad_norm:0.5\r\nstep:2 - act".encode("utf-16"), "or/grad_norm:1.5\r\n"
    log.write_bytes(first[:-1])  # in the middle of a character
    tail = Tail([log], reporter)
    tail.poll()
    with log.open("ab") as file:
        file.write(first[-1:] + rest.encode("utf-16-le"))
    tail.poll()
    tail.finish()
    assert [step.values["gradient.norm"] for step in steps(reporter.settings.spool)] == [0.5, 1.5]


def _line(step: int) -> str:
    return f"step:{step} - actor/grad_norm:{step}\n"


@pytest.mark.parametrize("how", ["renamed", "deleted", "emptied"])
def test_a_log_that_is_rotated_loses_nothing_that_was_written(
    reporter: Reporter, tmp_path: Path, how: str
) -> None:
    log = tmp_path / "run.log"
    log.write_text(_line(1) + _line(2))
    tail = Tail([log], reporter)
    tail.poll()
    if how == "emptied":
        log.write_text("")
    else:
        with log.open("a") as file:
            file.write(_line(3))
        if how == "renamed":
            log.rename(tmp_path / "run.log.1")
        else:
            log.unlink()
            tail.poll()
            tail.poll()
    log.write_text(_line(4))
    tail.poll()
    tail.finish()
    assert [step.step for step in steps(reporter.settings.spool)] == [1, 2, *([] if how == "emptied" else [3]), 4]
    assert tail.bad_count == (1 if how == "deleted" else 0), "told once, however long it is gone"


def test_a_first_line_that_is_still_being_written_decides_nothing(reporter: Reporter, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    log.write_text('{"step": 1, "lo')
    tail = Tail([log], reporter)
    tail.poll()
    with log.open("a") as file:
        file.write('ss": 1.0}\n{"step": 2, "loss": 1.0}\n{"step": 3, "loss": 1.0}')
    tail.poll()
    tail.finish()
    assert tail.bad_count == 0
    assert [step.step for step in steps(reporter.settings.spool)] == [1, 2, 3], "the last line needs no end"


def test_a_packed_log_is_read(reporter: Reporter, tmp_path: Path) -> None:
    log = tmp_path / "run.log.gz"
    log.write_bytes(gzip.compress((_line(1) + _line(2)).encode()))
    tail = Tail([log], reporter)
    tail.poll()
    tail.finish()
    assert [step.step for step in steps(reporter.settings.spool)] == [1, 2]


def test_names_of_a_log_steer_no_terminal(
    reporter: Reporter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.jsonl"
    log.write_text('{"step": 1, "loss": 1.0, "\\u001b[31m\\u202ex": 2}\n')
    follow(Tail([log], reporter), reporter, once=True)
    out = capsys.readouterr().out
    assert "\\x1b[31m\\u202ex" in out
    assert "\x1b" not in out
