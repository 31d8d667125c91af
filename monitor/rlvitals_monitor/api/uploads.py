"""A log as a request's body: to a file as it comes, in bounds, and read as whatever it is.

What a stranger sends may be anything: too long, a bomb of gzip, a damaged file of a tracker. Each ends in an
answer that says what was expected, and none holds a worker for longer than `READING_S`.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import orjson
from anyio import CapacityLimiter
from fastapi import Request

from rlvitals.contract.codec import DecodeError
from rlvitals.formats.log import Format
from rlvitals.formats.steps import STRIDE_MAX
from rlvitals_monitor.errors import BadRequest, TooLarge
from rlvitals_monitor.importers.past_run import PastRun, read_past_run

AT_ONCE = 2
"""Logs that are read at the same time; further ones wait, since each takes a processor."""
READING_S = 300.0
UNPACKED_TIMES = 16
"""How much larger than the bound on a body a packed log may be inside."""
WITH_RULES = "application/vnd.rlvitals.replay+json"
"""A body of this kind is an object: ``log`` is the log's text, ``rules`` is a rule file's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """``digest`` names what was sent; ``rules`` is the text of a rule file, or empty."""

    path: Path
    digest: str
    rules: str = ""
    limit: int = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a log is to be read: what sniffing or the log itself does not say."""

    form: Format | None = None
    every: int = 1
    run: str | None = None

    @classmethod
    def of(cls, form: str, every: int, run: str) -> Reading:
        """Raises `BadRequest` naming the field."""
        names = {f.value.lower(): f for f in Format}
        if form and form.lower() not in names:
            raise BadRequest(f"expected one of {', '.join(f.value for f in Format)}", field="format")
        if not 1 <= every <= STRIDE_MAX:
            raise BadRequest(f"expected a whole number from 1 to {STRIDE_MAX}", field="every")
        return cls(form=names.get(form.lower()), every=every, run=run or None)


async def use_upload(request: Request, limit: int, work: Callable[[Upload], Any]) -> Any:
    """What ``work`` makes of the body, off the event loop; the file is gone afterwards. Raises `TooLarge`."""
    with TemporaryDirectory(prefix="rlvitals-") as folder:
        upload = await _store(request, Path(folder) / "log", limit)
        return await anyio.to_thread.run_sync(work, upload, limiter=limiter(request.app.state))


async def _store(request: Request, path: Path, limit: int) -> Upload:
    digest, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                raise TooLarge(f"expected a log of at most {limit} bytes; pack it, or use `rlvitals replay`")
            digest.update(chunk)
            file.write(chunk)
    if not size:
        raise BadRequest("expected a log as the body, got nothing", field="body")
    upload = Upload(path=path, digest=digest.hexdigest(), limit=limit)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return _unwrapped(upload) if kind == WITH_RULES else upload


def _unwrapped(upload: Upload) -> Upload:
    try:
        told = orjson.loads(upload.path.read_bytes())
    except ValueError as error:
        raise BadRequest(f"expected an object with log and rules: {error}", field="body") from None
    if not isinstance(told, dict) or not set(told) <= {"log", "rules"} or "log" not in told:
        raise BadRequest("expected an object with log and rules", field="body")
    for name, text in told.items():
        if not isinstance(text, str):
            raise BadRequest(f"expected a text, got {type(text).__name__}", field=name)
    upload.path.write_text(told["log"], encoding="utf-8")
    return Upload(path=upload.path, digest=upload.digest, rules=told.get("rules", ""), limit=upload.limit)


@contextmanager
def reading(upload: Upload, how: Reading) -> Iterator[PastRun]:
    """The log's run; whatever goes wrong while it is read is the sender's to mend, and says how."""
    until = time.monotonic() + READING_S

    def watch(read: int) -> None:
        if read > UNPACKED_TIMES * upload.limit:
            raise TooLarge(f"expected at most {UNPACKED_TIMES * upload.limit} bytes after unpacking")
        if time.monotonic() > until:
            raise TooLarge(f"expected a log that is read within {READING_S:g} s; use `rlvitals replay`")

    try:
        yield read_past_run(upload.path, stride=how.every, form=how.form, run=how.run, seen=watch)
    except DecodeError:
        raise
    except (ValueError, OSError, EOFError, zlib.error, sqlite3.Error) as error:
        said = str(error).replace(str(upload.path), "the log")
        raise BadRequest(f"the log cannot be read: {said or type(error).__name__}", field="body") from None


def limiter(state: Any) -> CapacityLimiter:
    """Of all that judges whole runs at somebody's request."""
    if not hasattr(state, "log_limiter"):
        state.log_limiter = CapacityLimiter(AT_ONCE)
    shared: CapacityLimiter = state.log_limiter
    return shared
