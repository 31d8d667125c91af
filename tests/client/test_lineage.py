"""Of which attempts a process says that it knows what they did: of none that may yet act or is not whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rlvitals import spool
from rlvitals.contract.report import RunInfo
from rlvitals.journal import Journal, Writer
from rlvitals.lineage import HEIR_OF_MAX, Lineage, booted_s
from rlvitals.record import Kind
from rlvitals.spool import segments
from tests.client.conftest import MakeReporter
from tests.client.service import DEADLINE_S, Service

FIRST, SECOND, THIRD = "1" * 16, "2" * 16, "3" * 16
LOCAL = "/dev/sda / ext4 rw 0 0\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Journal]:
    def write(attempt: str, writer: str = "main", run: str = "r") -> Journal:
        who = Writer(run=RunInfo(id=run), attempt=attempt, writer=writer)
        journal = Journal(spool.journal_folder(tmp_path, run, who.folder), who)
        journal.append(Kind.EVENT, lambda seq: b"{}")
        return journal

    return write


def of(tmp_path: Path, *, mounts: str = LOCAL, booted: float = 0.0) -> Lineage:
    return Lineage(tmp_path, mounts=lambda: mounts, booted_s=lambda: booted)


def heirs(lineage: Lineage, attempt: str = THIRD) -> tuple[str, ...]:
    lineage.look("r", [])
    return lineage.before(Writer(run=RunInfo(id="r"), attempt=attempt))


def test_an_attempt_that_lives_is_not_answered_for_until_it_has_ended(
    tmp_path: Path, write: Callable[..., Journal]
) -> None:
    write(FIRST).close()
    living, lineage = write(SECOND), of(tmp_path)
    assert lineage.look("r", [])
    assert heirs(lineage) == (FIRST,)
    assert not lineage.look("r", [])
    living.close()
    assert lineage.look("r", []), "there is more to be read"
    assert heirs(lineage) == (FIRST, SECOND)


def test_a_living_writer_keeps_its_claim_though_others_look(tmp_path: Path, write: Callable[..., Journal]) -> None:
    living = write(FIRST)
    assert not spool.has_ended(living.folder)
    assert not spool.has_ended(living.folder)
    living.close()
    assert spool.has_ended(living.folder)
    assert spool.Lock.take(living.folder) is not None, "looking holds nothing"


def test_other_runs_and_attempts_of_several_processes_are_not_answered_for(
    tmp_path: Path, write: Callable[..., Journal]
) -> None:
    write(FIRST, run="other").close()
    write(SECOND, writer="rollout.ab").close()
    assert heirs(of(tmp_path)) == ()


def test_a_journal_without_its_beginning_may_have_told_of_a_command(
    tmp_path: Path, write: Callable[..., Journal]
) -> None:
    journal = write(FIRST)
    journal.close()
    (segment,) = segments(journal.folder)
    segment.path.rename(spool.segment_path(journal.folder, 2))
    assert heirs(of(tmp_path)) == ()


def test_a_journal_from_before_the_machine_last_started_may_lack_its_end(
    tmp_path: Path, write: Callable[..., Journal]
) -> None:
    journal = write(FIRST)
    journal.close()
    (segment,) = segments(journal.folder)
    os.utime(segment.path, (1000.0, 1000.0))
    assert heirs(of(tmp_path, booted=1001.0)) == ()
    assert heirs(of(tmp_path, booted=999.0)) == (FIRST,)
    assert booted_s() > 0


@pytest.mark.parametrize("how", ["network", "no locks", "no lock file"])
def test_where_locks_do_not_tell_no_attempt_counts_as_ended(
    tmp_path: Path, write: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    journal = write(FIRST)
    journal.close()
    if how == "no locks":
        monkeypatch.setattr(spool, "fcntl", None)
    if how == "no lock file":
        (journal.folder / spool.LOCK_FILE).unlink()
    assert heirs(of(tmp_path, mounts="server:/home / nfs4 rw 0 0\n" if how == "network" else LOCAL)) == ()


def test_attempts_of_the_same_process_answer_for_each_other_and_there_are_bounds() -> None:
    lineage = of(Path("nowhere"))
    for number in range(HEIR_OF_MAX + 5):
        lineage.begin(Writer(run=RunInfo(id="r"), attempt=f"{number:016x}"))
    last = Writer(run=RunInfo(id="r"), attempt=f"{HEIR_OF_MAX + 4:016x}")
    told = lineage.before(last)
    assert (len(told), told[-1]) == (HEIR_OF_MAX, f"{HEIR_OF_MAX + 3:016x}")
    assert lineage.before(Writer(run=RunInfo(id="r"), attempt="a", writer="rollout.ab")) == ()


def test_a_process_tells_the_service_of_the_attempts_that_it_answers_for(
    service: Service, make_reporter: MakeReporter, dead_url: str
) -> None:
    before = make_reporter(dead_url)
    before.report(0, {"a": 1.0})
    before.close()
    reporter = make_reporter(service.url)
    first = reporter.attempt
    reporter.report(5, {"a": 1.0})
    reporter.report(1, {"a": 1.0})
    assert reporter.flush(DEADLINE_S)
    told = {batch.attempt: batch.heir_of for batch in service.batches if batch.heir_of}
    assert told[reporter.attempt] == (before.attempt, first)
    assert before.attempt not in told, "what is sent for the dead answers for nobody"
