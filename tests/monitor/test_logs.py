from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from rlvitals_monitor.logs import JsonLines, LogFormat, LogSettings, write_json

LOGGERS = ("", "uvicorn", "uvicorn.error", "uvicorn.access")


@pytest.fixture
def kept() -> Iterator[None]:
    before = {name: (logging.getLogger(name).handlers[:], logging.getLogger(name).propagate) for name in LOGGERS}
    yield
    for name, (handlers, propagate) in before.items():
        logging.getLogger(name).handlers[:] = handlers
        logging.getLogger(name).propagate = propagate


def line(message: str, *args: object, error: BaseException | None = None) -> dict[str, str]:
    info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("rlvitals_monitor.x", logging.ERROR, "x.py", 1, message, args, info)
    text = JsonLines().format(record)
    assert "\n" not in text
    told: dict[str, str] = json.loads(text)
    return told


def test_a_record_is_one_line_with_its_parts() -> None:
    told = line("run %s failed\nin two lines", "r1\ud800")
    assert (told["level"], told["logger"]) == ("error", "rlvitals_monitor.x")
    assert told["message"] == "run r1\ud800 failed\nin two lines"
    assert told["at"].endswith("+00:00")


def test_an_error_comes_with_its_traceback() -> None:
    try:
        raise ValueError("why")
    except ValueError as error:
        told = line("it failed", error=error)
    assert told["error"].startswith("Traceback")
    assert told["error"].endswith("ValueError: why")


def test_no_secret_is_written() -> None:
    told = line("GET %s", "/ui/login?token=rlv_secret&next=/", error=RuntimeError("/ui/act/hidden"))
    assert "rlv_secret" not in json.dumps(told)
    assert "hidden" not in json.dumps(told)


def test_all_of_the_process_writes_json(kept: None, capsys: pytest.CaptureFixture[str]) -> None:
    write_json()
    logging.getLogger().handlers[0].setStream(sys.stderr)  # type: ignore[attr-defined]
    logging.getLogger("uvicorn.error").error("server")
    logging.getLogger("rlvitals_monitor.worker").error("worker")
    logged = [json.loads(text)["message"] for text in capsys.readouterr().err.splitlines()]
    assert logged == ["server", "worker"]


def test_text_is_the_default_and_json_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LogSettings().log_format is LogFormat.TEXT
    monkeypatch.setenv("RLVITALS_LOG_FORMAT", "json")
    assert LogSettings().log_format is LogFormat.JSON
