"""The sender against a real HTTP server on the loopback."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import sys
import threading
from datetime import datetime, timezone
from pathlib import Path

import pytest

from rlvitals.contract.command import Command, CommandKind, Outcome
from rlvitals.contract.report import Event, Extreme, Phase, StepReport, Text
from rlvitals.reporter import Reporter
from rlvitals.settings import Mode
from rlvitals.spool import journals, read_acked, segments
from tests.client.conftest import MakeReporter
from tests.client.disks import remount, tmpfs
from tests.client.service import DEADLINE_S, Reply, Service

LATER = datetime(2100, 1, 1, tzinfo=timezone.utc)


def steps_of(service: Service) -> list[int]:
    return [report.step for report in service.steps()]


def failures(reporter: Reporter) -> float:
    return reporter.counters["failures"]


def wait_until_failed(reporter: Reporter) -> None:
    rounds = reporter._sender._rounds
    with rounds:
        assert rounds.wait_for(lambda: failures(reporter) > 0, DEADLINE_S)


def test_what_is_reported_arrives_with_nan_infinities_and_missing_kept_apart(
    service: Service, make_reporter: MakeReporter
) -> None:
    reporter = make_reporter(service.url)
    values = {"fine": 1.5, "nan": math.nan, "up": math.inf, "down": -math.inf, "absent": None}
    worst = Extreme(value=math.nan, token_id=7, position=0)
    reporter.report(3, values, missing={"ratio.max": "not computed"}, extremes={"nan": worst}, time_s=12.0)
    reporter.text(3, 0, "bad \ud800 \ufffd text", reward=math.inf, token_ids=[1, 2])
    reporter.histogram(3, "kl.grad_norm", [0.0, 1.0, math.inf], [3, 4])
    assert reporter.flush(DEADLINE_S)
    (step,) = service.steps()
    assert (step.step, step.time_s) == (3, 12.0)
    assert step.values["fine"] == 1.5
    assert math.isnan(step.values["nan"])
    assert (step.values["up"], step.values["down"]) == (math.inf, -math.inf)
    assert "absent" not in step.values
    assert step.missing == {"absent": "not measured", "ratio.max": "not computed"}
    assert step.extremes["nan"].token_id == 7
    assert math.isnan(step.extremes["nan"].value)
    (text,) = service.of_kind(Text)
    assert isinstance(text, Text)
    assert (text.completion, text.reward) == ("bad \ud800 \ufffd text", math.inf)
    assert service.batches[-1].run.id == "r"


def test_what_the_network_needs_is_loaded_before_the_thread_begins(
    service: Service, make_reporter: MakeReporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the thread each of its files would ask the training for the interpreter's lock."""
    monkeypatch.delitem(sys.modules, "http.client", raising=False)
    begun: list[bool] = []
    start = threading.Thread.start

    def begin(thread: threading.Thread) -> None:
        if thread.name == "rlvitals-sender":
            begun.append("http.client" in sys.modules)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", begin)
    make_reporter(service.url).report(0, {"a": 1.0})
    assert begun == [True]


def test_the_bearer_and_the_encoding_are_sent(service: Service, make_reporter: MakeReporter) -> None:
    reporter = make_reporter(service.url, token="s3cret")
    reporter.report(0, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    assert service.headers[0]["authorization"] == "Bearer s3cret"
    assert service.headers[0]["content-encoding"] == "gzip"


def test_without_a_server_reports_wait_on_disk(dead_url: str, make_reporter: MakeReporter) -> None:
    reporter = make_reporter(dead_url)
    for step in range(10):
        reporter.report(step, {"a": 1.0})
    wait_until_failed(reporter)
    assert not reporter.flush(0.05)
    assert reporter.counters["dropped"] == 0
    assert reporter.counters["spool_bytes"] > 0


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=500, body=b"Internal Server Error"),
        Reply(status=503, headers={"Retry-After": "0"}),
        Reply(status=429, headers={"Retry-After": "nonsense"}),
        Reply(body=b"<html>a captive portal</html>"),
        Reply(body=b'{"epoch": 5}'),
        Reply(body=b'{"epoch":"e","stored_through":"many"}'),
        Reply(body=b""),
        Reply(body=b"\xff\xfe\x00" * 50),
        Reply(status=204),
    ],
    ids=["500", "503", "429", "html", "no receipt", "wrong type", "empty", "bytes", "204"],
)
def test_an_answer_that_may_pass_is_tried_again_until_all_is_stored(
    service: Service, make_reporter: MakeReporter, reply: Reply
) -> None:
    service.replies.extend([reply, reply])
    reporter = make_reporter(service.url)
    for step in range(3):
        reporter.report(step, {"a": float(step)})
    assert reporter.flush(DEADLINE_S)
    assert steps_of(service) == [0, 1, 2]
    assert service.requests >= 3


def test_a_hanging_server_never_holds_up_a_report(service: Service, make_reporter: MakeReporter) -> None:
    service.always = Reply(hang=True)
    reporter = make_reporter(service.url, timeout_s=0.3)
    reporter.report(0, {"a": 1.0})
    service.wait_for(lambda: service.requests >= 1)
    for step in range(1, 200):
        reporter.report(step, {"a": 1.0})
    wait_until_failed(reporter)
    assert "time" in reporter._sender.last_error.lower()
    service.always = None
    service.released.set()
    assert reporter.flush(DEADLINE_S)
    assert steps_of(service) == list(range(200))


def test_a_redirect_is_not_followed_so_the_bearer_stays(service: Service, make_reporter: MakeReporter) -> None:
    from tests.client.service import serving

    with serving(Service()) as elsewhere:
        service.always = Reply(status=307, headers={"Location": f"{elsewhere.url}/api/v1/reports"})
        reporter = make_reporter(service.url, token="s3cret")
        reporter.report(0, {"a": 1.0})
        wait_until_failed(reporter)
        assert elsewhere.requests == 0
        assert "redirect" in reporter._sender.last_error


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_keeps_all_on_disk_is_told_once_and_retried_slowly(
    service: Service, make_reporter: MakeReporter, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    service.always = Reply(status=status, body=b"no \x1b[31mway")
    reporter = make_reporter(service.url)
    for step in range(5):
        reporter.report(step, {"a": 1.0})
    wait_until_failed(reporter)
    assert not reporter.flush(0.1)
    assert service.requests == 1
    told = [r.message for r in caplog.records if f"HTTP {status}" in r.message]
    assert len(told) == 1
    assert "\x1b" not in told[0]
    assert reporter.counters["dropped"] == 0


def test_a_batch_that_is_too_large_is_split(service: Service, make_reporter: MakeReporter) -> None:
    service.judge = lambda batch: Reply(status=413) if len(batch.steps) > 3 else None
    reporter = make_reporter(service.url)
    for step in range(50):
        reporter.report(step, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    assert steps_of(service) == list(range(50))
    assert reporter.counters["dropped"] == 0


def test_one_record_that_can_never_be_taken_does_not_hold_up_the_rest(
    service: Service, make_reporter: MakeReporter
) -> None:
    service.judge = lambda batch: Reply(status=422) if any(s.step == 17 for s in batch.steps) else None
    reporter = make_reporter(service.url)
    for step in range(30):
        reporter.report(step, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    assert steps_of(service) == [s for s in range(30) if s != 17]
    assert reporter.counters["dropped.refused"] == 1


def test_a_service_that_understands_nothing_makes_nothing_be_given_up(
    service: Service, make_reporter: MakeReporter
) -> None:
    service.always = Reply(status=422, body=b"protocol 9 expected")
    reporter = make_reporter(service.url)
    for step in range(4):
        reporter.report(step, {"a": 1.0})
    wait_until_failed(reporter)
    assert reporter.counters["dropped"] == 0


def test_sending_twice_changes_nothing(service: Service, make_reporter: MakeReporter) -> None:
    service.replies.append(Reply(status=500, store=True))
    reporter = make_reporter(service.url)
    for step in range(5):
        reporter.report(step, {"a": float(step)})
    assert reporter.flush(DEADLINE_S)
    assert steps_of(service) == [0, 1, 2, 3, 4]


def test_an_acknowledgement_above_what_was_sent_is_ignored(service: Service, make_reporter: MakeReporter) -> None:
    from dataclasses import replace

    lies = [True, True]
    service.edit = lambda receipt: replace(receipt, stored_through=10**9) if lies and lies.pop() else receipt
    reporter = make_reporter(service.url)
    for step in range(5):
        reporter.report(step, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    assert reporter.counters["receipts_ignored"] == 2
    assert reporter.counters["acknowledged_seq"] == 6
    assert steps_of(service) == [0, 1, 2, 3, 4]


def test_a_restored_store_gets_again_what_it_lost(service: Service, make_reporter: MakeReporter) -> None:
    reporter = make_reporter(service.url, segment_bytes=600)
    for step in range(20):
        reporter.report(step, {"a": float(step)})
    assert reporter.flush(DEADLINE_S)
    service.restore("epoch-2", keep_through=8)
    for step in range(20, 25):
        reporter.report(step, {"a": float(step)})
    assert reporter.flush(DEADLINE_S)
    assert steps_of(service) == list(range(25))
    assert service.duplicates == 0


def test_a_finished_attempt_is_sent_again_to_a_restored_store(
    service: Service, make_reporter: MakeReporter
) -> None:
    first = make_reporter(service.url)
    first.report(0, {"a": 1.0})
    assert first.flush(DEADLINE_S)
    first.close()
    service.restore("epoch-2", keep_through=0)
    second = make_reporter(service.url)
    second.report(1, {"a": 1.0})
    service.wait_for(lambda: steps_of(service) in ([0, 1], [1, 0]))


def test_the_newest_facts_about_the_run_are_told_even_between_reports(
    service: Service, make_reporter: MakeReporter
) -> None:
    reporter = make_reporter(service.url)
    reporter.report(0, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    reporter.describe(model="qwen", config={"group_size": 8, "hub_token": "hf_x"}, capabilities={"stop": ""})
    assert reporter.flush(DEADLINE_S)
    run = service.batches[-1].run
    assert (run.model, run.config, run.capabilities) == (
        "qwen",
        {"group_size": 8, "hub_token": "(removed)"},
        {"stop": ""},
    )


def test_heartbeats_come_as_often_as_the_receipt_says(service: Service, make_reporter: MakeReporter) -> None:
    service.heartbeat_s = 0.2
    reporter = make_reporter(service.url)
    reporter.phase(Phase.ROLLOUT)
    reporter.report(4, {"a": 1.0})
    service.wait_for(lambda: sum(not b.steps and not b.events for b in service.batches) >= 3)
    beat = service.batches[-1].heartbeat
    assert beat is not None
    assert (beat.phase, beat.last_step) == (Phase.ROLLOUT, 4)


def test_a_command_rides_on_a_receipt_and_its_outcome_on_the_next_batch(
    service: Service, make_reporter: MakeReporter
) -> None:
    service.commands = (Command(id="c1", kind=CommandKind.CHECKPOINT, expires_at=LATER),)
    reporter = make_reporter(service.url)
    reporter.report(0, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    (command,) = reporter.control.take(1)
    assert command.id == "c1"
    reporter.control.applied(command, step=1, before=0.1, after=math.nan)
    assert reporter.flush(DEADLINE_S)
    assert reporter.control.take(2) == ()
    (outcome,) = service.of_kind(Outcome)
    assert isinstance(outcome, Outcome)
    assert (outcome.command_id, outcome.step, outcome.before) == ("c1", 1, 0.1)
    assert outcome.after is not None
    assert math.isnan(outcome.after)


def test_a_killed_trainers_journal_is_sent_by_the_next_process(
    service: Service, make_reporter: MakeReporter, dead_url: str, tmp_path: Path
) -> None:
    offline = make_reporter(dead_url, run="old")
    for step in range(150):
        offline.report(step, {"a": float(step)})
    offline.close()
    reporter = make_reporter(service.url)
    reporter.report(0, {"b": 1.0})
    service.wait_for(lambda: len(service.steps(offline.attempt)) == 150)
    assert reporter.flush(DEADLINE_S)
    assert {b.run.id for b in service.batches if b.attempt == offline.attempt} == {"old"}


def test_what_a_killed_trainer_sent_from_memory_beyond_its_full_disk_holds_up_nothing(
    service: Service, make_reporter: MakeReporter, dead_url: str
) -> None:
    offline = make_reporter(dead_url, run="old")
    for step in range(20):
        offline.report(step, {"a": math.nan})
    offline.close()
    service.stored_through[offline.attempt, "main"] = 1_000
    reporter = make_reporter(service.url)
    reporter.report(0, {"b": 1.0})
    assert reporter.flush(DEADLINE_S)
    (folder,) = [one for one in journals(reporter.settings.spool) if one.name == offline.attempt]
    rounds = reporter._sender._rounds
    with rounds:
        assert rounds.wait_for(lambda: read_acked(folder).complete, DEADLINE_S)
    assert failures(reporter) == reporter.counters["receipts_ignored"] == 0


def test_a_living_writers_journal_is_left_to_it(
    service: Service, make_reporter: MakeReporter, dead_url: str
) -> None:
    living = make_reporter(dead_url, run="other")
    living.report(0, {"a": 1.0})
    reporter = make_reporter(service.url)
    reporter.report(0, {"b": 1.0})
    assert reporter.flush(DEADLINE_S)
    assert service.steps(living.attempt) == []
    assert not reporter._sender._adopt()


def test_the_acknowledged_position_is_kept_beside_the_segments(
    service: Service, make_reporter: MakeReporter, tmp_path: Path
) -> None:
    reporter = make_reporter(service.url)
    reporter.report(0, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    (folder,) = journals(tmp_path / "spool")
    assert read_acked(folder).stored_through == 2
    assert not read_acked(folder).complete
    reporter.close()
    assert read_acked(folder).complete


def test_acknowledged_bytes_leave_the_spool_metric(service: Service, make_reporter: MakeReporter) -> None:
    reporter = make_reporter(service.url)
    for step in range(5):
        reporter.report(step, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    reporter.report(5, {"a": 1.0, "new": None}, missing={"b": "why"})
    assert reporter.flush(DEADLINE_S)
    waiting = [step.values["rlvitals.spool_bytes"] for step in service.steps()]
    assert waiting[4] > waiting[1] > 0
    assert waiting[5] < waiting[4]
    rounds = reporter._sender._rounds
    with rounds:
        assert rounds.wait_for(lambda: reporter.counters["spool_bytes"] == 0, DEADLINE_S)


def test_a_step_counter_that_goes_back_begins_a_new_attempt(service: Service, make_reporter: MakeReporter) -> None:
    reporter = make_reporter(service.url)
    first = reporter.attempt
    for step in (1, 2, 2, 3):
        reporter.report(step, {"a": 1.0})
    reporter.report(2, {"a": 9.0})
    assert reporter.attempt != first
    assert reporter.flush(DEADLINE_S)
    assert [s.step for s in service.steps(first)] == [1, 2, 2, 3]
    assert [(s.seq, s.step) for s in service.steps(reporter.attempt)] == [(2, 2)]
    rewinds = [e for e in service.of_kind(Event) if isinstance(e, Event) and e.payload.get("reason") == "rewind"]
    assert [e.payload["before"] for e in rewinds] == [3]


def test_two_threads_report_and_all_arrives(service: Service, make_reporter: MakeReporter) -> None:
    reporter = make_reporter(service.url)

    def report(name: str) -> None:
        for step in range(300):
            reporter.report(step, {name: float(step)})

    threads = [threading.Thread(target=report, args=(n,)) for n in ("x", "y")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reporter.flush(DEADLINE_S)
    for name in ("x", "y"):
        assert [s.values[name] for s in service.steps() if name in s.values] == [float(s) for s in range(300)]
    assert len({b.attempt for b in service.batches}) == 1


def test_a_full_disk_is_bridged_by_memory_and_nothing_is_lost(
    service: Service, make_reporter: MakeReporter, tmp_path: Path
) -> None:
    with tmpfs(tmp_path / "small", "48k") as disk:
        reporter = make_reporter(service.url, spool=disk / "spool")
        for step in range(1000):
            reporter.report(step, {"a": float(step), "b": 1.0})
        assert reporter.flush(DEADLINE_S)
        assert steps_of(service) == list(range(1000))
        assert reporter.counters["dropped"] == 0
        reporter.close()


def test_a_read_only_spool_is_bridged_by_memory(
    service: Service, make_reporter: MakeReporter, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with tmpfs(tmp_path / "ro", "1m") as disk:
        remount(disk, "ro")
        reporter = make_reporter(service.url, spool=disk / "spool")
        for step in range(10):
            reporter.report(step, {"a": float(step)})
        assert reporter.flush(DEADLINE_S)
        assert steps_of(service) == list(range(10))
        assert sum("cannot write the spool" in r.message for r in caplog.records) == 1
        remount(disk, "rw")
        reporter.report(10, {"a": 1.0})
        assert reporter.flush(DEADLINE_S)
        assert steps_of(service)[-1] == 10
        reporter.close()


def test_a_file_in_place_of_the_spool_is_bridged_by_memory(
    service: Service, make_reporter: MakeReporter, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    reporter = make_reporter(service.url, spool=tmp_path / "file")
    for step in range(3):
        reporter.report(step, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    assert steps_of(service) == [0, 1, 2]


def test_a_spool_that_vanishes_in_mid_run_loses_nothing_that_was_read(
    service: Service, make_reporter: MakeReporter, tmp_path: Path
) -> None:
    reporter = make_reporter(service.url)
    reporter.report(0, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    shutil.rmtree(tmp_path / "spool")
    reporter.report(1, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    reporter.report(2, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    assert steps_of(service) == [0, 1, 2]


def test_a_failing_write_in_mid_run_is_told_and_counted_in_no_drop(
    service: Service, make_reporter: MakeReporter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reporter = make_reporter(service.url)
    reporter.report(0, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    write = os.write
    with monkeypatch.context() as patched:

        def refuse(fd: int, data: bytes) -> int:
            raise OSError(errno.EDQUOT, "Disk quota exceeded")

        patched.setattr(os, "write", refuse)
        reporter.report(1, {"a": 1.0})
        assert reporter.flush(DEADLINE_S)
    assert os.write is write
    assert steps_of(service) == [0, 1]
    assert reporter.counters["dropped"] == 0


def test_a_run_says_once_where_its_page_is(
    service: Service, make_reporter: MakeReporter, caplog: pytest.LogCaptureFixture
) -> None:
    reporter = make_reporter(service.url)
    for step in range(3):
        reporter.report(step, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    assert [m for m in caplog.messages if "/ui/run/" in m] == [
        f"rlvitals: run {reporter.run.id}: {service.url}/ui/run/{reporter.run.id}"
    ]


def test_values_still_on_a_device_are_journalled_in_order_once_ready(
    service: Service, make_reporter: MakeReporter
) -> None:
    reporter = make_reporter(service.url)
    ready = [False]
    for step in range(3):
        reporter.report_when(step, lambda: ready[0], lambda step=step: ({"a": float(step)}, {"b": "why"}, {}))  # type: ignore[misc]
    assert not reporter.flush(0.05)
    ready[0] = True
    assert reporter.flush(DEADLINE_S)
    assert [(s.step, s.values["a"], s.missing) for s in service.steps()] == [
        (0, 0.0, {"b": "why"}),
        (1, 1.0, {"b": "why"}),
        (2, 2.0, {"b": "why"}),
    ]


def test_acknowledged_segments_are_deleted_by_size_and_the_newest_kept(
    service: Service, make_reporter: MakeReporter, tmp_path: Path
) -> None:
    reporter = make_reporter(service.url, segment_bytes=2000, kept_bytes=5000)
    for step in range(400):
        reporter.report(step, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    (folder,) = journals(tmp_path / "spool")
    before = len(segments(folder))
    reporter._sender._tidy_s = -1e9
    reporter._sender._house_keep()
    kept = segments(folder)
    assert before > 8
    assert sum(s.size for s in kept) <= 5000 + 2500
    reporter.report(400, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    assert steps_of(service) == list(range(401))


def test_an_unsent_spool_is_bounded_and_the_oldest_goes_counted(
    dead_url: str, make_reporter: MakeReporter, tmp_path: Path
) -> None:
    reporter = make_reporter(dead_url, segment_bytes=2000, spool_bytes=6000, mode=Mode.OFFLINE)
    for step in range(400):
        reporter.report(step, {"a": 1.0})
    reporter._sender._tidy_s = -1e9
    reporter._sender._house_keep()
    (folder,) = journals(tmp_path / "spool")
    kept = segments(folder)
    assert sum(s.size for s in kept) <= 6000 + 2500
    assert reporter.counters["dropped.spool full"] == kept[0].first_seq - 1


def test_what_is_on_the_wire_is_plain_json(service: Service, make_reporter: MakeReporter) -> None:
    from rlvitals.contract.report import ReportBatch, RunInfo
    from rlvitals.contract.wire import to_wire

    batch = ReportBatch(
        run=RunInfo(id="r"),
        attempt="a",
        steps=(StepReport(seq=1, step=1, time_s=0.0, values={"x": math.nan, "y": 1.0}),),
    )
    assert json.loads(json.dumps(to_wire(batch), allow_nan=False))["rows"] == [[1, 1, 0.0, "NaN", 1.0]]
