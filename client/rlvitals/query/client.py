"""One service, asked over REST. Reads only; nothing here changes anything there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import quote

import httpx2

from rlvitals import settings
from rlvitals.contract import codec
from rlvitals.contract.alert import Alert, Transition
from rlvitals.contract.report import Json
from rlvitals.contract.view import (
    AuditView,
    CommandView,
    EventView,
    ExtremeView,
    HistogramView,
    MetricView,
    RuleView,
    RunView,
    SeriesView,
    TextView,
)
from rlvitals.query import tables
from rlvitals.query.errors import QueryError, Unavailable, Unreadable, error_of

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

API = "/api/v1"
PAGE = 200
TIMEOUT_S = 60.0

Parameters = Mapping[str, Any]
T = TypeVar("T")


class Query:
    """``url`` and ``token`` are found as a trainer's client finds them: ``RLVITALS_URL``, ``RLVITALS_TOKEN``, or
    the file that a service on this machine has left. The token needs the scope ``read``.

    Every method raises a `QueryError`: `Refused`, `NotThere`, `Deleted`, `Unreadable` or `Unavailable`.
    ``http`` may be a client of one's own (a proxy, a certificate), whose base URL is the service's.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        http: httpx2.Client | None = None,
    ) -> None:
        if http is None:
            chosen = settings.load(url=url, token=token)
            headers = {"Authorization": f"Bearer {chosen.token}"} if chosen.token else {}
            http = httpx2.Client(base_url=chosen.url, headers=headers, timeout=timeout_s)
        self._http = http

    def __enter__(self) -> Query:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # -- runs --------------------------------------------------------------------------------------------------

    def runs(self, **wanted: Any) -> Iterator[RunView]:
        """Runs from the newest on, page by page as you take them. ``wanted`` are the parameters of
        ``GET /api/v1/runs``: ``project``, ``q``, ``state``, ``label``, ``sort`` and the others, lists for many.
        """
        return self._pages(RunView, "/runs", wanted)

    def run(self, run: str) -> RunView:
        """One run with its configuration and attempts."""
        return codec.decode(RunView, self._get(_of(run)))

    def metrics(self, run: str, *, attempt: str | None = None) -> tuple[MetricView, ...]:
        """What was measured, and what could not be, with the reason."""
        return self._list(MetricView, _of(run, "metrics"), {"attempt": attempt})

    def events(self, run: str, **wanted: Any) -> tuple[EventView, ...]:
        """Newest first; ``kind`` and ``limit`` choose."""
        return self._list(EventView, _of(run, "events"), wanted)

    def texts(self, run: str, **wanted: Any) -> tuple[TextView, ...]:
        """Kept completions; ``step``, ``worst``, ``attempt`` and ``limit`` choose. They are a model's own words:
        untrusted."""
        return self._list(TextView, _of(run, "texts"), wanted)

    def rules(self, run: str) -> tuple[RuleView, ...]:
        """How each rule stands on the run: active, inactive, or unknown with the reason."""
        return self._list(RuleView, _of(run, "rules"), {})

    # -- numbers -----------------------------------------------------------------------------------------------

    def series(self, run: str, *metrics: str, **wanted: Any) -> tuple[SeriesView, ...]:
        """For a chart: at most ``limit`` points or buckets each, in which no spike and no NaN is lost."""
        return self._list(SeriesView, _of(run, "series"), {"metric": list(metrics), **wanted})

    def histograms(self, run: str, metric: str, **wanted: Any) -> tuple[HistogramView, ...]:
        return self._list(HistogramView, _of(run, "histograms"), {"metric": metric, **wanted})

    def extremes(self, run: str, metric: str, **wanted: Any) -> tuple[ExtremeView, ...]:
        return self._list(ExtremeView, _of(run, "extremes"), {"metric": metric, **wanted})

    def arrow(
        self,
        run: str,
        metrics: Sequence[str] = (),
        *,
        attempt: str | None = None,
        first: int | None = None,
        last: int | None = None,
    ) -> pyarrow.Table:
        """Raw numbers: ``step``, ``time``, and a column of doubles for each metric (without any: for all that
        there are). Null is missing; NaN and the infinities are themselves.
        """
        wanted = {"metric": list(metrics), "attempt": attempt, "from": first, "to": last}
        try:
            return tables.read_parquet(self._bytes(_of(run, "export"), {**wanted, "format": "parquet"}))
        except Unreadable as error:
            if error.field != "format":
                raise
        # the service has no pyarrow
        return tables.read_csv(self._bytes(_of(run, "export"), {**wanted, "format": "csv"}))

    def pandas(self, run: str, metrics: Sequence[str] = (), **wanted: Any) -> pandas.DataFrame:
        """As `arrow`, with Arrow's own column types, since NumPy's know no difference of NaN and missing."""
        return tables.to_pandas(self.arrow(run, metrics, **wanted))

    def polars(self, run: str, metrics: Sequence[str] = (), **wanted: Any) -> polars.DataFrame:
        """As `arrow`."""
        return tables.to_polars(self.arrow(run, metrics, **wanted))

    def save(
        self,
        run: str,
        file: str | os.PathLike[str],
        metrics: Sequence[str] = (),
        *,
        form: Literal["csv", "parquet"] = "parquet",
        **wanted: Any,
    ) -> int:
        """Writes the raw numbers of a run of any length to a file, and answers its size in bytes. What is there
        is replaced once all has come.
        """
        place = Path(file)
        part = place.with_name(f"{place.name}.partial")
        question = _plain({"metric": list(metrics), "format": form, **wanted})
        try:
            with part.open("wb") as written, self._stream(_of(run, "export"), question) as answer:
                for piece in answer.iter_bytes():
                    written.write(piece)
            part.replace(place)
        except httpx2.HTTPError as error:
            raise self._silent(error) from error
        finally:
            part.unlink(missing_ok=True)
        return place.stat().st_size

    # -- alerts and commands -----------------------------------------------------------------------------------

    def alerts(self, **wanted: Any) -> Iterator[Alert]:
        """Newest first, of all runs or of ``run``; ``state`` chooses."""
        return self._pages(Alert, "/alerts", wanted)

    def transitions(self, run: str, **wanted: Any) -> tuple[Transition, ...]:
        """Each change of each alert of the run, oldest first."""
        return self._list(Transition, _of(run, "transitions"), wanted)

    def commands(self, **wanted: Any) -> Iterator[CommandView]:
        """Newest first, of all runs or of ``run``; ``state`` chooses."""
        return self._pages(CommandView, "/commands", wanted)

    def audit(self, **wanted: Any) -> Iterator[AuditView]:
        """Newest first; ``run``, ``who`` and ``what`` choose."""
        return self._pages(AuditView, "/audit", wanted)

    def get(self, path: str, **wanted: Any) -> Json:
        """Any other address below ``/api/v1``, as plain JSON."""
        found: Json = self._get(path, wanted)
        return found

    # -- the wire ----------------------------------------------------------------------------------------------

    def _pages(self, kind: type[T], path: str, wanted: Parameters) -> Iterator[T]:
        cursor = ""
        while True:
            page = self._get(path, {"limit": PAGE, **wanted, "cursor": cursor or None})
            yield from (codec.decode(kind, item) for item in page["items"])
            cursor = page["next"]
            if not cursor:
                return

    def _list(self, kind: type[T], path: str, wanted: Parameters) -> tuple[T, ...]:
        return tuple(codec.decode(kind, item) for item in self._get(path, wanted))

    def _get(self, path: str, wanted: Parameters | None = None) -> Any:
        return codec.loads(self._bytes(path, wanted or {}))

    def _bytes(self, path: str, wanted: Parameters) -> bytes:
        try:
            answer = self._http.get(f"{API}{path}", params=_plain(wanted), follow_redirects=False)
        except httpx2.HTTPError as error:
            raise self._silent(error) from error
        if answer.status_code != 200:
            raise error_of(answer.status_code, answer.headers, answer.content, self._where)
        return answer.content

    def _stream(self, path: str, question: Parameters) -> Any:
        return _Answer(self._http, f"{API}{path}", question, self._where)

    def _silent(self, error: Exception) -> QueryError:
        return Unavailable(f"{self._where} does not answer ({type(error).__name__}: {error}): is the service up?")

    @property
    def _where(self) -> str:
        return str(self._http.base_url).rstrip("/")


class _Answer:
    """A stream that is known to bear data, once it is entered."""

    def __init__(self, http: httpx2.Client, path: str, question: Parameters, where: str) -> None:
        self._stream = http.stream("GET", path, params=question, follow_redirects=False)
        self._where = where

    def __enter__(self) -> httpx2.Response:
        answer = self._stream.__enter__()
        if answer.status_code != 200:
            body = answer.read()
            self._stream.__exit__(None, None, None)
            raise error_of(answer.status_code, answer.headers, body, self._where)
        return answer

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.__exit__(kind, error, trace)


def segment(name: str) -> str:
    """One part of a path, whatever stands in it: ``..`` or ``?`` would lead to another endpoint."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def _of(run: str, *parts: str) -> str:
    return "/".join(("/runs", segment(run), *parts))


def _plain(wanted: Parameters) -> dict[str, Any]:
    """Without what is not told; enums by their values, flags as REST spells them."""
    return {name: _spelt(value) for name, value in wanted.items() if value is not None}


def _spelt(value: Any) -> Any:
    if isinstance(value, list | tuple | set | frozenset):
        return [_spelt(one) for one in value]
    plain = codec.encode(value)
    return str(plain).lower() if isinstance(plain, bool) else plain
