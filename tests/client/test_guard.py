from __future__ import annotations

import pytest

from rlvitals import guard
from rlvitals.guard import Guard, attempt, kept, outcome


@kept("fallback")
def fails(error: BaseException) -> str:
    raise error


def test_an_error_of_ours_never_reaches_the_caller_and_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("RLVITALS_RAISE")
    before = guard.errors
    assert [fails(ValueError("broken")) for _ in range(3)] == ["fallback"] * 3
    assert guard.errors == before + 3
    assert sum("broken" in r.message for r in caplog.records) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_an_interrupt_always_passes(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    monkeypatch.delenv("RLVITALS_RAISE")
    with pytest.raises(type(error)):
        fails(error)
    with pytest.raises(type(error)), Guard("here"):
        raise error


def test_tests_see_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_RAISE", "1")
    with pytest.raises(ValueError, match="broken"):
        fails(ValueError("broken"))


def test_a_guarded_block_says_whether_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLVITALS_RAISE")
    with Guard("well") as well:
        pass
    with Guard("ill") as ill:
        raise OSError
    assert (well.failed, ill.failed) == (False, True)


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.delenv("RLVITALS_RAISE")
    monkeypatch.setenv("RLVITALS_DEBUG", "1")
    fails(ValueError("seen"))
    assert caplog.records[-1].exc_info is not None


def test_foreign_code_that_fails_gives_no_value() -> None:
    assert attempt(float, "1.5") == 1.5
    assert attempt(float, "x") is None


def test_foreign_code_that_fails_tells_why_in_one_line() -> None:
    def refuse() -> None:
        raise OSError("no such file\nand a page of advice")

    assert outcome(float, "1.5") == (1.5, "")
    assert outcome(refuse) == (None, "OSError: no such file")


def test_foreign_code_cannot_hold_back_an_interrupt() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        outcome(interrupt)
