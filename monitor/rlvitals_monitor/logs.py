"""Keeps secrets out of the log, where a sign-in link has its token in the address; writes JSON lines if asked."""

from __future__ import annotations

import json
import logging
import re
from datetime import datetime, timezone
from enum import Enum

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

_SECRET = re.compile(r"(token=|entry=|/ui/act/|/ui/share/|\brlv_)[^&?\s\"']+")


def blank_secrets(text: str) -> str:
    """Without the secrets of addresses, and without tokens."""
    return _SECRET.sub(r"\1…", text)


class HideTokens(logging.Filter):
    """Blanks the secrets in a record's arguments, where uvicorn's access log has the address."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(blank_secrets(a) if isinstance(a, str) else a for a in record.args)
        return True


def hide_tokens() -> None:
    """For the access log; once is enough, twice does no harm."""
    log = logging.getLogger("uvicorn.access")
    if not any(isinstance(known, HideTokens) for known in log.filters):
        log.addFilter(HideTokens())


class LogFormat(str, Enum):
    TEXT = "text"
    JSON = "json"


class LogSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="RLVITALS_", extra="ignore", frozen=True)

    log_format: LogFormat = Field(
        default=LogFormat.TEXT, description="text for people, json for collectors of logs"
    )


class JsonLines(logging.Formatter):
    """One object a line: at (UTC), level, logger, thread, message, and error with the traceback. No secrets."""

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "at": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "thread": record.threadName,
            "message": record.getMessage(),
        }
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps({key: blank_secrets(value or "") for key, value in told.items()})


def write_json() -> None:
    """From now on all of this process's logs are JSON lines on stderr, the web server's among them."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.getLogger().handlers[:] = [handler]
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
