"""The numbers of a batch: series, points, extremes, missing reasons and histograms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection, bindparam, insert, or_, select, update

from rlvitals.contract import codec
from rlvitals.contract.evaluation import is_evaluated, is_evaluation
from rlvitals.contract.metrics import Merge, find
from rlvitals.contract.report import Extreme, Histogram, Refusal, StepReport
from rlvitals.contract.wire import STEP_MAX as STEP_MAX
from rlvitals_monitor.store import horizon, names, rollups
from rlvitals_monitor.store.admission import Place
from rlvitals_monitor.store.bulk import Upsert
from rlvitals_monitor.store.numbers import is_time, join, seconds_to_micros, split, to_micros
from rlvitals_monitor.store.tables import extremes, histograms, points, series, steps

METRICS_MAX = 2_000
"""Metrics of one attempt; names made from data (a metric per prompt) would otherwise grow without end."""
REASON_CHARS_MAX = 500
TOKEN_CHARS_MAX = 64
BINS_MAX = 1_000
INT_MAX = 2**63 - 1
_CHUNK = 500

Lines = Sequence[tuple[int, StepReport]]
T = TypeVar("T")


def plausible(lines: Lines, refused: list[Refusal]) -> list[tuple[int, StepReport]]:
    """The reports whose step and time can be; the others become refusals."""
    kept = []
    for line, report in lines:
        if not -STEP_MAX <= report.step <= STEP_MAX:
            refused.append(
                Refusal(line=line, field="step", reason=f"expected a step within ±2^53, got {report.step}")
            )
        elif not is_time(report.time_s):
            reason = f"expected seconds since 1970 within the calendar, got {report.time_s!r}"
            refused.append(Refusal(line=line, field="time_s", reason=reason))
        else:
            kept.append((line, report))
    return kept


def store_steps(connection: Connection, place: Place, lines: Lines, now: datetime, refused: list[Refusal]) -> int:
    """Stores plausible reports of one writer, in the order of their seq; returns how many."""
    lines = _still_kept(connection, place, lines, refused)
    if not lines:
        return 0
    wanted = [(line, n) for line, r in lines for part in (r.values, r.missing, r.extremes) for n in part]
    numbers = _series(connection, place.attempt_number, wanted, refused)
    _store_step_rows(connection, place.attempt_number, lines, now)
    values = {
        (numbers[name], report.step): float(value)
        for _, report in lines
        for name, value in _told(report)
        if name in numbers
    }
    _store_points(connection, place, values, {number: name for name, number in numbers.items()})
    _store_missing(connection, lines, numbers)
    _store_extremes(connection, lines, numbers, refused)
    return len(lines)


def _still_kept(connection: Connection, place: Place, lines: Lines, refused: list[Refusal]) -> Lines:
    """Without steps whose raw points have gone: what is told of one now may be in its rollups already."""
    last = place.last_step
    if last is None or all(report.step > last for _, report in lines):
        return lines
    first = horizon.read(connection, place.attempt_number)
    if first is None:
        return lines
    for line, report in lines:
        if report.step < first:
            reason = f"the raw points of steps before {first} came of age and are no longer kept"
            refused.append(Refusal(line=line, field="step", reason=reason))
    return [(line, report) for line, report in lines if report.step >= first]


def _told(report: StepReport) -> Iterable[tuple[str, float]]:
    """All values; of an evaluation its own alone, since what stands beside them is the training step's to say."""
    if not is_evaluation(report.values):
        return report.values.items()
    return ((name, value) for name, value in report.values.items() if is_evaluated(name))


def store_histograms(
    connection: Connection, place: Place, lines: Sequence[tuple[int, Histogram]], refused: list[Refusal]
) -> int:
    """Stores histograms that hold together; returns how many."""
    good = []
    for line, histogram in lines:
        fault = _histogram_fault(histogram)
        if fault:
            refused.append(Refusal(line=line, field="histograms", reason=fault))
        else:
            good.append((line, histogram))
    numbers = _series(connection, place.attempt_number, [(line, h.metric) for line, h in good], refused)
    rows = {
        (numbers[h.metric], h.step): (
            numbers[h.metric],
            h.step,
            codec.dumps(h.edges).decode(),
            codec.dumps(h.counts).decode(),
        )
        for _, h in good
        if h.metric in numbers
    }
    _histograms.write(connection, list(rows.values()))
    return len(rows)


_points, _extremes, _steps = Upsert(points), Upsert(extremes), Upsert(steps)
_histograms = Upsert(histograms)


def _series(
    connection: Connection, attempt: int, wanted: Iterable[tuple[int, str]], refused: list[Refusal]
) -> dict[str, int]:
    """Numbers of the wanted metrics, made where they are new; what may not be made becomes one refusal each."""
    lines: dict[str, int] = {}
    for line, name in wanted:
        lines.setdefault(name, line)
    if not lines:
        return {}
    known = _known_series(connection, attempt)
    new: list[dict[str, object]] = []
    for name in sorted(lines.keys() - known.keys()):
        fault = names.metric_fault(name)
        if not fault and len(known) + len(new) >= METRICS_MAX:
            fault = f"a run keeps at most {METRICS_MAX} metrics, and this one would be one more"
        if fault:
            shown = names.clean(name, names.METRIC_CHARS_MAX)
            refused.append(Refusal(line=lines[name], field=shown, reason=fault))
        else:
            new.append({"attempt": attempt, "metric": name, "missing_reason": ""})
    if new:
        connection.execute(insert(series), new)
        known = _known_series(connection, attempt)
    return {name: known[name] for name in lines if name in known}


def _known_series(connection: Connection, attempt: int) -> dict[str, int]:
    rows = connection.execute(select(series.c.metric, series.c.number).where(series.c.attempt == attempt))
    return {row.metric: row.number for row in rows}


def _store_step_rows(connection: Connection, attempt: int, lines: Lines, now: datetime) -> None:
    received = to_micros(now)
    trained = [r for _, r in lines if not is_evaluation(r.values)]
    rows = {r.step: (attempt, r.step, seconds_to_micros(r.time_s), received) for r in trained}
    _steps.write(connection, list(rows.values()))


def _store_points(
    connection: Connection, place: Place, values: Mapping[rollups.Point, float], metrics: Mapping[int, str]
) -> None:
    """Adds what is new, merges what was there; of training only steps up to the attempt's last can have been."""
    last = place.last_step
    # under the run's lock: of training, no step beyond the attempt's last has a point
    maybe = {p for p in values if (last is not None and p[1] <= last) or is_evaluated(metrics[p[0]])}
    before = _existing(connection, [p for p in values if p in maybe])
    merged = {
        point: values[point] if place.alone else merge(metrics[point[0]], old, values[point])
        for point, old in before.items()
    }
    final = {**values, **merged}
    rows = {point: (*point, *split(final[point])) for point in sorted(final)}
    _points.add(connection, [row for point, row in rows.items() if point not in maybe])
    _points.write(connection, [row for point, row in rows.items() if point in maybe])
    rollups.add(connection, {point: value for point, value in values.items() if point not in before})
    rollups.rebuild(connection, (point for point in merged if split(merged[point]) != split(before[point])))


def merge(metric: str, old: float, new: float) -> float:
    """One step's values from two writers as one. NaN in either stays NaN, as it would in one process."""
    known = find(metric)
    how = Merge.LAST if known is None else known.merge
    if how is Merge.SUM:
        return old + new
    if how in (Merge.MIN, Merge.MAX):
        if old != old or new != new:
            return float("nan")
        return min(old, new) if how is Merge.MIN else max(old, new)
    return new


def _existing(connection: Connection, wanted: Sequence[rollups.Point]) -> dict[rollups.Point, float]:
    found: dict[rollups.Point, float] = {}
    by_step = sorted({step for _, step in wanted})
    numbers = sorted({number for number, _ in wanted})
    for some in _chunks(by_step):
        rows = connection.execute(select(points).where(points.c.series.in_(numbers), points.c.step.in_(some)))
        found.update({(row.series, row.step): join(row.value, row.kind) for row in rows})
    return {point: found[point] for point in wanted if point in found}


def _chunks(items: Sequence[T]) -> Iterable[Sequence[T]]:
    return (items[start : start + _CHUNK] for start in range(0, len(items), _CHUNK))


def _store_missing(connection: Connection, lines: Lines, numbers: Mapping[str, int]) -> None:
    latest: dict[int, dict[str, object]] = {}
    for _, report in lines:
        for name, reason in report.missing.items():
            if name in numbers:
                shown = names.clean(reason, REASON_CHARS_MAX)
                latest[numbers[name]] = {"of": numbers[name], "reason": shown, "at": report.step}
    if latest:
        not_later = or_(series.c.missing_step.is_(None), series.c.missing_step <= bindparam("at"))
        connection.execute(
            update(series)
            .where(series.c.number == bindparam("of"), not_later)
            .values(missing_reason=bindparam("reason"), missing_step=bindparam("at")),
            [latest[number] for number in sorted(latest)],
        )


def _store_extremes(
    connection: Connection, lines: Lines, numbers: Mapping[str, int], refused: list[Refusal]
) -> None:
    rows = {}
    for line, report in lines:
        for name, extreme in report.extremes.items():
            if name not in numbers:
                continue
            if not _fits(extreme):
                reason = "expected token_id, position and sample within 64 bits"
                refused.append(Refusal(line=line, field=f"extremes.{name}", reason=reason))
                continue
            rows[numbers[name], report.step] = _extreme_row(numbers[name], report.step, extreme)
    _extremes.write(connection, list(rows.values()))


def _fits(extreme: Extreme) -> bool:
    return all(v is None or abs(v) <= INT_MAX for v in (extreme.token_id, extreme.position, extreme.sample))


def _extreme_row(number: int, step: int, extreme: Extreme) -> tuple[object, ...]:
    token = None if extreme.token is None else names.clean(extreme.token, TOKEN_CHARS_MAX)
    where = (extreme.token_id, extreme.position, extreme.sample, extreme.masked)
    return (number, step, *split(float(extreme.value)), *where, token)


def _histogram_fault(histogram: Histogram) -> str:
    if not -STEP_MAX <= histogram.step <= STEP_MAX:
        return f"expected a step within ±2^53, got {histogram.step}"
    if len(histogram.edges) != len(histogram.counts) + 1:
        return f"expected one edge more than counts, got {len(histogram.edges)} and {len(histogram.counts)}"
    if len(histogram.counts) > BINS_MAX:
        return f"a histogram has at most {BINS_MAX} bins, this has {len(histogram.counts)}"
    if any(not 0 <= count <= INT_MAX for count in histogram.counts):
        return "expected counts from 0 on, within 64 bits"
    return ""
