from __future__ import annotations

import math
import sys
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import rlvitals
from rlvitals import guard
from rlvitals import reporter as reporter_module
from rlvitals.contract.command import Command, CommandKind
from rlvitals.contract.metrics import find
from rlvitals.contract.report import Event, EventKind, Extreme, Phase, StepReport, Text
from rlvitals.follow import Follower
from rlvitals.reporter import OWN_METRICS, PENDING_MAX, Reporter
from rlvitals.settings import Mode
from rlvitals.spool import journals
from tests.client.conftest import MakeReporter
from tests.client.service import Service


def records(tmp_path: Path) -> list[Any]:
    found = []
    for folder in journals(tmp_path / "spool"):
        follower = Follower(folder, live=lambda: True)
        found += [item.record for item in follower.read(100_000)]
        follower.close()
    return found


def steps(tmp_path: Path) -> list[StepReport]:
    return [r for r in records(tmp_path) if isinstance(r, StepReport)]


def users_values(report: StepReport) -> Mapping[str, float]:
    return {name: value for name, value in report.values.items() if name not in OWN_METRICS}


@pytest.fixture
def offline(make_reporter: MakeReporter) -> Reporter:
    return make_reporter(mode=Mode.OFFLINE)


def test_a_step_is_in_the_journal_when_report_returns(offline: Reporter, tmp_path: Path) -> None:
    offline.report(3, {"loss": 1.5}, time_s=99.0)
    (report,) = steps(tmp_path)
    assert (report.step, report.time_s, users_values(report)) == (3, 99.0, {"loss": 1.5})


def test_metrics_about_ourselves_ride_on_every_step_and_are_registered(offline: Reporter, tmp_path: Path) -> None:
    for step in range(2):
        offline.report(step, {"loss": 1.0})
    offline.spent(2.5)
    offline.report(2, {"loss": 1.0})
    first, second, third = steps(tmp_path)
    assert set(OWN_METRICS) <= set(first.values)
    assert all(find(name) for name in OWN_METRICS)
    assert 0 < second.values["rlvitals.overhead"] < 1.0
    assert third.values["rlvitals.overhead"] > 2.5
    assert third.values["rlvitals.spool_bytes"] > second.values["rlvitals.spool_bytes"] > 0


class Scalar:
    """Like a 0-d array or tensor of any library."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return self.value


class Poisoned:
    def __float__(self) -> float:
        raise RuntimeError("a tensor with 2 elements")


def test_what_is_no_number_is_dropped_and_counted_and_the_rest_kept(offline: Reporter, tmp_path: Path) -> None:
    values = {
        "int": 2,
        "true": True,
        "scalar": Scalar(math.inf),
        "none": None,
        "text": "0.5",
        "list": [1.0],
        "poisoned": Poisoned(),
        "huge": 10**400,
        "nan": math.nan,
    }
    offline.report(0, values)
    (report,) = steps(tmp_path)
    got = dict(users_values(report))
    assert math.isnan(got.pop("nan"))
    assert got == {"int": 2.0, "true": 1.0, "scalar": math.inf}
    assert report.missing == {"none": "not measured"}
    assert offline.counters["dropped.not a number"] == 4


def test_an_int_beyond_a_double_costs_that_value_only(offline: Reporter, tmp_path: Path) -> None:
    offline.report(0, {"huge": 10**400, "fine": 1})
    offline.report(1, {"fine": 2})
    first, second = steps(tmp_path)
    assert (users_values(first), users_values(second)) == ({"fine": 1.0}, {"fine": 2.0})


def test_numpy_and_torch_scalars_are_numbers(offline: Reporter, tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    torch = pytest.importorskip("torch")
    leaf = torch.tensor(2.0, requires_grad=True)
    offline.report(
        numpy.int64(4),
        {"f32": numpy.float32(0.5), "0d": numpy.array(math.nan), "grad": leaf, "many": torch.zeros(3)},
    )
    (report,) = steps(tmp_path)
    got = dict(users_values(report))
    assert report.step == 4
    assert math.isnan(got.pop("0d"))
    assert got == {"f32": 0.5, "grad": 2.0}


def test_a_users_own_value_never_overwrites_ours(offline: Reporter, tmp_path: Path) -> None:
    for step in range(2):
        offline.report(step, {"rlvitals.errors": -5.0, "a": 1.0})
    assert [r.values["rlvitals.errors"] for r in steps(tmp_path)] == [float(guard.errors)] * 2
    assert [r.values["a"] for r in steps(tmp_path)] == [1.0, 1.0]


def test_nothing_is_written_and_no_thread_started_before_the_first_record(make_reporter: MakeReporter) -> None:
    reporter = make_reporter(mode=Mode.OFFLINE)
    assert not reporter.settings.spool.exists()
    assert reporter._sender._thread is None
    reporter.close()
    assert not reporter.settings.spool.exists()


def test_the_first_record_says_which_attempt_begins_and_why(offline: Reporter, tmp_path: Path) -> None:
    offline.report(0, {})
    first = records(tmp_path)[0]
    assert isinstance(first, Event)
    assert (first.kind, first.payload["reason"]) == (EventKind.ATTEMPT, "start")


def test_a_new_thread_that_bears_the_number_of_an_ended_one_is_no_rewind(
    offline: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter_module, "get_ident", lambda: 7)
    attempt = offline.attempt

    def report() -> None:
        for step in range(3):
            offline.report(step, {"x": 1.0})

    for _ in range(2):
        thread = threading.Thread(target=report)
        thread.start()
        thread.join()
    assert offline.attempt == attempt


def test_a_thread_that_lags_behind_is_no_rewind(offline: Reporter) -> None:
    attempt = offline.attempt
    offline.report(10, {"a": 1.0})
    other = threading.Thread(target=lambda: offline.report(9, {"b": 1.0}))
    other.start()
    other.join()
    offline.report(10, {"c": 1.0})
    assert offline.attempt == attempt
    offline.report(9, {"a": 1.0})
    assert offline.attempt != attempt


def test_a_disabled_reporter_does_nothing(make_reporter: MakeReporter) -> None:
    reporter = make_reporter(mode=Mode.DISABLED)
    reporter.report(0, {"a": 1.0})
    reporter.text(0, 0, "x")
    reporter.event(EventKind.NOTE)
    reporter.histogram(0, "h", [0, 1], [1])
    reporter.report_when(0, lambda: True, lambda: ({}, {}, {}))
    reporter.describe(model="m")
    assert reporter.flush()
    reporter.close()
    assert not reporter.settings.spool.exists()
    assert not Reporter.disabled().enabled


def test_a_long_text_is_cut_and_counted(offline: Reporter, tmp_path: Path) -> None:
    offline.text(1, 2, "x" * 100_000, prompt="p", token_ids=range(100_000), reward=-math.inf, truncated=True)
    (text,) = [r for r in records(tmp_path) if isinstance(r, Text)]
    assert (len(text.completion), len(text.token_ids)) == (64 * 1024, 32 * 1024)
    assert (text.reward, text.truncated, text.sample) == (-math.inf, True, 2)
    assert offline.counters["texts_cut"] == 1
    assert offline.counters["dropped"] == 0


def test_a_wrong_histogram_is_kept_from_the_trainer(offline: Reporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLVITALS_RAISE")
    before = guard.errors
    offline.histogram(0, "h", [0.0, 1.0], [1, 2, 3])
    offline.report("not a step", {"a": 1.0})  # type: ignore[arg-type]
    offline.event("no such kind")
    assert guard.errors == before + 3


def test_an_event_loses_its_secrets(offline: Reporter, tmp_path: Path) -> None:
    offline.event(EventKind.NOTE, 3, what="x", api_key="sk-1", odd={1, 2})
    event = records(tmp_path)[-1]
    assert event.payload == {"what": "x", "api_key": "(removed)", "odd": [1, 2]}


def test_a_phase_is_told_when_it_changes(offline: Reporter, tmp_path: Path) -> None:
    for phase in (Phase.STARTING, Phase.ROLLOUT, Phase.ROLLOUT, "update"):
        offline.phase(phase)
    told = [r.payload["phase"] for r in records(tmp_path) if isinstance(r, Event) and r.kind is EventKind.PHASE]
    assert told == ["starting", "rollout", "update"]


def test_after_close_nothing_is_written(offline: Reporter, tmp_path: Path) -> None:
    offline.report(0, {"a": 1.0})
    offline.close(Phase.FAILED)
    offline.report(1, {"a": 1.0})
    assert [s.step for s in steps(tmp_path)] == [0]
    assert records(tmp_path)[-1].payload == {"phase": "failed"}


def test_device_values_that_are_ready_come_before_the_next_step(offline: Reporter, tmp_path: Path) -> None:
    offline.report_when(1, lambda: True, lambda: ({"a": 1.0}, {}, {"a": Extreme(value=2.0)}))
    offline.report(2, {"a": 2.0})
    assert [s.step for s in steps(tmp_path)] == [1, 2]


def test_device_values_that_never_come_are_bounded_and_counted(make_reporter: MakeReporter) -> None:
    reporter = make_reporter(mode=Mode.OFFLINE)
    for step in range(PENDING_MAX + 3):
        reporter.report_when(step, lambda: False, lambda: ({}, {}, {}))
    assert reporter.counters["dropped.device"] == 3
    assert reporter.counters["pending"] == PENDING_MAX


def test_device_values_that_fail_cost_their_step_only(
    offline: Reporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RLVITALS_RAISE")

    def fail() -> tuple[dict[str, float], dict[str, str], dict[str, Extreme]]:
        raise RuntimeError("device lost")

    offline.report_when(1, lambda: True, fail)
    offline.report_when(2, lambda: True, lambda: ({"a": 2.0}, {}, {}))
    offline.report(3, {})
    assert [s.step for s in steps(tmp_path)] == [2, 3]
    assert offline.counters["dropped.device"] == 1


def test_offline_flush_says_that_all_is_on_disk(offline: Reporter) -> None:
    offline.report(0, {"a": 1.0})
    assert offline.flush(5.0)


def test_offline_flush_waits_for_what_a_device_owes(offline: Reporter, tmp_path: Path) -> None:
    ready = [False]
    offline.report(0, {"a": 0.0})
    assert offline.flush(5.0), "a round in which nothing is owed"
    offline.report_when(1, lambda: ready[0], lambda: ({"a": 1.0}, {}, {}))
    assert not offline.flush(0.0)
    ready[0] = True
    assert offline.flush(5.0)
    assert [s.step for s in steps(tmp_path)] == [0, 1]


def test_the_end_of_the_interpreter_says_whether_it_failed(
    make_reporter: MakeReporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "last_value", ValueError("boom"), raising=False)
    make_reporter(mode=Mode.OFFLINE).report(0, {"a": 1.0})
    reporter_module._at_exit()
    assert records(tmp_path)[-1].payload == {"phase": "failed"}


def test_init_takes_arguments_and_cleans_the_config(tmp_path: Path) -> None:
    reporter = rlvitals.init(
        project="p",
        run="run-1",
        name="n",
        model="m",
        config={"beta": math.nan, "wandb_api_key": "k"},
        tags=["x"],
        capabilities={"stop": ""},
        spool=tmp_path / "spool",
        mode="offline",
    )
    run = reporter.run
    assert (run.id, run.project, run.name, run.model, run.tags) == ("run-1", "p", "n", "m", ("x",))
    assert run.config["wandb_api_key"] == "(removed)"
    assert run.capabilities == {"stop": ""}
    reporter.close()


def test_two_runs_without_an_id_are_two_runs(tmp_path: Path) -> None:
    ids = {rlvitals.init(name="my run!", spool=tmp_path, mode="offline").run.id for _ in range(20)}
    assert len(ids) == 20
    assert all(run.startswith("my-run-") for run in ids)


def test_init_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLVITALS_RAISE")
    assert not rlvitals.init(tags=5).enabled  # type: ignore[arg-type]


def test_attach_to_an_unknown_trainer_is_told_and_harmless(caplog: pytest.LogCaptureFixture) -> None:
    reporter = rlvitals.attach(object())
    assert not reporter.enabled
    assert "no integration for object" in caplog.text


def test_attach_finds_the_integration_by_the_trainers_class(monkeypatch: pytest.MonkeyPatch) -> None:
    import types

    seen: list[object] = []
    fake = types.ModuleType("rlvitals.integrations.fake")

    def hook(trainer: object, **arguments: object) -> Reporter:
        seen.append((trainer, arguments))
        return Reporter.disabled()

    fake.__dict__["attach"] = hook
    monkeypatch.setitem(sys.modules, "rlvitals.integrations.fake", fake)
    monkeypatch.setattr("rlvitals.start.INTEGRATIONS", {"some_trainer": "rlvitals.integrations.fake"})
    base = type("GRPOTrainer", (), {"__module__": "some_trainer.grpo"})
    trainer = type("Mine", (base,), {"__module__": "__main__"})()
    rlvitals.attach(trainer, project="p")
    assert seen == [(trainer, {"project": "p"})]


def test_an_attach_that_fails_leaves_the_trainer_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLVITALS_RAISE")
    monkeypatch.setattr("rlvitals.start.INTEGRATIONS", {"builtins": "rlvitals.no_such_module"})
    assert not rlvitals.attach(object()).enabled


def test_an_evaluation_beside_the_steps_is_no_rewind_and_no_step(
    make_reporter: MakeReporter, tmp_path: Path
) -> None:
    reporter = make_reporter(mode=Mode.OFFLINE)
    reporter.report(0, {"eval_loss": 1.0})
    assert reporter.last_step is None
    for step in range(5, 8):
        reporter.report(step, {"policy.loss": 1.0})
    first = reporter.attempt
    reporter.report(20, {"eval_loss": 0.5, "epoch": 1.0})
    reporter.report(3, {"eval/aime": 0.25})
    reporter.report(8, {"policy.loss": 1.0})
    assert (reporter.last_step, reporter.attempt) == (8, first)
    written = [s for s in steps(tmp_path) if "policy.loss" not in s.values]
    assert [(s.step, s.values.get("eval_loss")) for s in written] == [
        (0, 1.0),
        (20, 0.5),
        (3, None),
    ]
    reporter.report(7, {"policy.loss": 1.0})
    assert reporter.attempt != first


def test_an_extreme_that_no_journal_can_hold_costs_no_step(make_reporter: MakeReporter, tmp_path: Path) -> None:
    reporter = make_reporter(mode=Mode.OFFLINE)
    good = Extreme(value=math.nan, token_id=7, token="x" * 100_000)
    reporter.report(1, {"m": 1.0, "n": 2.0}, extremes={"m": Extreme(value=1.0, token_id=2**70), "n": good})
    (step,) = steps(tmp_path)
    assert step.values["m"] == 1.0
    assert step.extremes["m"] == Extreme(value=1.0)
    assert step.extremes["n"].token_id == 7
    assert math.isnan(step.extremes["n"].value)
    assert len(step.extremes["n"].token or "") == 256


def test_texts_can_be_switched_off_for_every_integration_at_once(
    make_reporter: MakeReporter, tmp_path: Path
) -> None:
    reporter = make_reporter(mode=Mode.OFFLINE, texts=False)
    reporter.text(1, 0, "private", prompt="private", token_ids=[1, 2])
    reporter.report(1, {"m": 1.0})
    assert not [record for record in records(tmp_path) if isinstance(record, Text)]
    assert b"private" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*.seg"))


def test_a_run_that_is_ended_while_it_is_paused_says_that_it_has_ended(
    make_reporter: MakeReporter, service: Service
) -> None:
    reporter = make_reporter(service.url, exit_flush_s=10.0)
    reporter.report(1, {"loss": 1.0})
    soon = datetime.now(timezone.utc) + timedelta(hours=1)
    reporter.control.offer([Command(id="c1", kind=CommandKind.PAUSE, expires_at=soon)])
    assert len(reporter.control.take(1)) == 1
    assert reporter.control.paused
    assert reporter.flush()
    reporter.close(Phase.FAILED)
    told = [b.heartbeat.phase for b in service.batches if b.heartbeat is not None]
    assert told[-1] is Phase.FAILED
