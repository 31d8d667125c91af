"""Keeps secrets out of the log: a sign-in link carries its token in the address, a message's link its secret."""

from __future__ import annotations

import logging
import re

_SECRET = re.compile(r"(token=|entry=|/ui/act/|/ui/share/)[^&?\s\"']+")


class HideTokens(logging.Filter):
    """Blanks the secrets in a record's arguments, where uvicorn's access log has the address."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_SECRET.sub(r"\1…", a) if isinstance(a, str) else a for a in record.args)
        return True


def hide_tokens() -> None:
    """For the access log; once is enough, twice does no harm."""
    log = logging.getLogger("uvicorn.access")
    if not any(isinstance(known, HideTokens) for known in log.filters):
        log.addFilter(HideTokens())
