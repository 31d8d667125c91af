"""Kept completions and events: untrusted text, made storable by both databases, read back newest first."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, case, func, insert, or_, select

from rlvitals.contract import codec
from rlvitals.contract.report import Event, EventKind, Refusal, Text
from rlvitals.contract.view import EventView, TextStepView, TextView
from rlvitals.contract.wire import STEP_MAX
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.store import names, token_details
from rlvitals_monitor.store.admission import Place
from rlvitals_monitor.store.numbers import from_micros, is_time, join, seconds_to_micros, split
from rlvitals_monitor.store.tables import NumberKind, attempts, events, texts

TEXT_CHARS_MAX = 65_536
TOKEN_IDS_MAX = 65_536
TOKEN_ID_MAX = 2**32 - 1
SAMPLE_MAX = 2**31 - 1
WHY_CHARS_MAX = 32
PAYLOAD_TEXT_MAX = 4_000
NEIGHBOURS_MAX = 2_000
_BADNESS = (
    func.coalesce(texts.c.invalid_utf8, 0).desc(),
    case((texts.c.why == "reservoir", 1), else_=0),
    case(
        {NumberKind.NAN: 0, NumberKind.NEG_INF: 1, NumberKind.FINITE: 2, NumberKind.POS_INF: 3},
        value=texts.c.reward_kind,
        else_=4,
    ),
    texts.c.reward,
)
"""Broken bytes first, then what was kept as a worst one, then the least reward: a NaN is worse than any."""


def store_texts(
    connection: Connection, place: Place, lines: Sequence[tuple[int, Text]], refused: list[Refusal]
) -> int:
    """Stores completions, cut to `TEXT_CHARS_MAX`; returns how many."""
    rows = []
    for line, text in lines:
        fault = _text_fault(text)
        if fault:
            refused.append(Refusal(line=line, field="texts", reason=fault))
        else:
            rows.append(_text_row(place.attempt_number, text))
    if rows:
        connection.execute(insert(texts), rows)
    return len(rows)


def store_events(
    connection: Connection, place: Place, lines: Sequence[tuple[int, Event]], refused: list[Refusal]
) -> int:
    """Stores events with their payloads; returns how many."""
    rows = []
    for line, event in lines:
        try:
            rows.append(event_row(place.attempt_number, event))
        except ValueError as error:
            refused.append(Refusal(line=line, field="events", reason=str(error)))
    if rows:
        connection.execute(insert(events), rows)
    return len(rows)


def read_texts(
    connection: Connection,
    run: str,
    *,
    step: int | None,
    limit: int,
    attempt: str | None = None,
    worst: bool = False,
    with_tokens: bool = False,
) -> list[TextView]:
    """Completions of one step, or the newest ones, of one attempt or of all; newest or ``worst`` first."""
    query = _of_run(texts, run)
    if step is not None:
        query = query.where(texts.c.step == step)
    if attempt:
        query = query.where(attempts.c.id == attempt)
    order = (*_BADNESS, texts.c.number.desc()) if worst else (texts.c.number.desc(),)
    rows = connection.execute(query.order_by(*order).limit(limit))
    return [_text_view(row, with_tokens=with_tokens) for row in rows]


def read_worst(
    connection: Connection, attempt_number: int, first: int, last: int, *, limit: int
) -> list[TextView]:
    """Completions of an attempt between two steps, worst first."""
    query = select(texts, attempts.c.id.label("attempt_id")).join(attempts, attempts.c.number == texts.c.attempt)
    here = (texts.c.attempt == attempt_number) & texts.c.step.between(first, last)
    rows = connection.execute(query.where(here).order_by(*_BADNESS, texts.c.step, texts.c.number).limit(limit))
    return [_text_view(row) for row in rows]


def read_text(connection: Connection, run: str, number: int) -> TextView:
    """One completion with its tokens. Raises `NotFound`."""
    row = connection.execute(_of_run(texts, run).where(texts.c.number == number)).first()
    if row is None:
        raise NotFound(f"run {run!r} has no completion {number}")
    return _text_view(row, with_tokens=True)


def read_same_prompt(connection: Connection, run: str, text: TextView, limit: int) -> list[TextView]:
    """Others of its prompt, the nearest first, among the `NEIGHBOURS_MAX` kept before it and after it."""
    if not text.prompt:
        return []
    kept = select(texts.c.number).join(attempts, attempts.c.number == texts.c.attempt).where(attempts.c.run == run)
    before = kept.where(texts.c.number < text.number).order_by(texts.c.number.desc()).limit(NEIGHBOURS_MAX)
    after = kept.where(texts.c.number > text.number).order_by(texts.c.number).limit(NEIGHBOURS_MAX)
    near = or_(texts.c.number.in_(before), texts.c.number.in_(after))
    query = _of_run(texts, run).where(near, texts.c.prompt == text.prompt)
    nearest = func.abs(texts.c.number - text.number), texts.c.number.desc()
    rows = connection.execute(query.order_by(*nearest).limit(limit))
    return [_text_view(row) for row in rows]


def read_text_steps(
    connection: Connection, attempt: tuple[int, str], *, around: int | None, limit: int
) -> list[TextStepView]:
    """The steps of an attempt (number, id) of which completions were kept, latest first.

    With ``around`` half of them lie after that step, else they are the latest ones.
    """
    of_step = select(
        texts.c.step,
        func.count().label("texts"),
        func.coalesce(func.sum(texts.c.invalid_utf8), 0).label("invalid_utf8"),
        func.coalesce(func.sum(case((texts.c.truncated, 1), else_=0)), 0).label("truncated"),
    ).where(texts.c.attempt == attempt[0])
    of_step = of_step.group_by(texts.c.step)
    if around is None:
        rows = list(connection.execute(of_step.order_by(texts.c.step.desc()).limit(limit)))
    else:
        later = of_step.where(texts.c.step > around).order_by(texts.c.step).limit(limit // 2)
        until = of_step.where(texts.c.step <= around).order_by(texts.c.step.desc()).limit(limit - limit // 2)
        rows = [*reversed(list(connection.execute(later))), *connection.execute(until)]
    return [
        TextStepView(
            attempt=attempt[1],
            step=row.step,
            texts=int(row.texts),
            invalid_utf8=int(row.invalid_utf8),
            truncated=int(row.truncated),
        )
        for row in rows
    ]


def read_last(connection: Connection, attempt_number: int, through: int, limit: int) -> list[TextView]:
    """The completions of the last step up to ``through`` that has any, at most ``limit`` of them."""
    known = texts.c.attempt == attempt_number
    last = connection.scalar(select(func.max(texts.c.step)).where(known, texts.c.step <= through))
    query = select(texts, attempts.c.id.label("attempt_id")).join(attempts, attempts.c.number == texts.c.attempt)
    rows = connection.execute(query.where(known, texts.c.step == last).order_by(texts.c.number).limit(limit))
    return [_text_view(row) for row in rows]


def read_events(connection: Connection, run: str, *, limit: int, kind: EventKind | None = None) -> list[EventView]:
    """The newest events of all attempts, newest first; ``kind``: only these."""
    query = _of_run(events, run)
    if kind is not None:
        query = query.where(events.c.kind == kind.value)
    rows = connection.execute(query.order_by(events.c.number.desc()).limit(limit))
    return [
        EventView(
            attempt=row.attempt_id, at=from_micros(row.time), kind=row.kind, step=row.step, payload=row.payload
        )
        for row in rows
    ]


def pack_ids(ids: Sequence[int]) -> bytes:
    """Token ids as little-endian unsigned 32-bit numbers."""
    packed = array("I", ids)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def unpack_ids(packed: bytes) -> tuple[int, ...]:
    ids = array("I")
    ids.frombytes(packed)
    if sys.byteorder == "big":
        ids.byteswap()
    return tuple(ids)


def _of_run(table: Any, run: str) -> Select[Any]:
    return (
        select(table, attempts.c.id.label("attempt_id"))
        .join(attempts, attempts.c.number == table.c.attempt)
        .where(attempts.c.run == run)
    )


def _text_fault(text: Text) -> str:
    if not -STEP_MAX <= text.step <= STEP_MAX:
        return f"expected a step within ±2^53, got {text.step}"
    if not 0 <= text.sample <= SAMPLE_MAX:
        return f"expected a sample from 0 to {SAMPLE_MAX}, got {text.sample}"
    if len(text.token_ids) > TOKEN_IDS_MAX:
        return f"expected at most {TOKEN_IDS_MAX} token ids, got {len(text.token_ids)}"
    if any(not 0 <= i <= TOKEN_ID_MAX for i in text.token_ids):
        return f"expected token ids from 0 to {TOKEN_ID_MAX}"
    if text.invalid_utf8 is not None and not 0 <= text.invalid_utf8 <= SAMPLE_MAX:
        return f"expected invalid_utf8 from 0 to {SAMPLE_MAX}, got {text.invalid_utf8}"
    return token_details.fault(text.tokens)


def _text_row(attempt: int, text: Text) -> dict[str, Any]:
    value, kind = (None, None) if text.reward is None else split(float(text.reward))
    return {
        "attempt": attempt,
        "step": text.step,
        "sample": text.sample,
        "prompt": names.clean(text.prompt, TEXT_CHARS_MAX),
        "completion": names.clean(text.completion, TEXT_CHARS_MAX),
        "token_ids": pack_ids(text.token_ids),
        "reward": value,
        "reward_kind": kind,
        "truncated": text.truncated,
        "invalid_utf8": text.invalid_utf8,
        "why": names.clean(text.why, WHY_CHARS_MAX),
        "tokens": codec.encode(text.tokens),
    }


def _text_view(row: Row[Any], *, with_tokens: bool = False) -> TextView:
    return TextView(
        attempt=row.attempt_id,
        step=row.step,
        sample=row.sample,
        completion=row.completion,
        prompt=row.prompt,
        token_ids=unpack_ids(row.token_ids),
        reward=None if row.reward_kind is None else join(row.reward, row.reward_kind),
        truncated=row.truncated,
        invalid_utf8=row.invalid_utf8,
        why=row.why,
        number=row.number,
        tokens=token_details.read(row.tokens) if with_tokens else None,
    )


def event_row(attempt: int, event: Event) -> dict[str, Any]:
    """What is stored of an event. Raises `ValueError` where it is beyond the bounds."""
    if not is_time(event.time_s):
        raise ValueError(f"expected seconds since 1970 within the calendar, got {event.time_s!r}")
    if event.step is not None and not -STEP_MAX <= event.step <= STEP_MAX:
        raise ValueError(f"expected a step within ±2^53, got {event.step}")
    return {
        "attempt": attempt,
        "time": seconds_to_micros(event.time_s),
        "step": event.step,
        "kind": event.kind.value,
        "payload": names.clean_json(event.payload, text_limit=PAYLOAD_TEXT_MAX),
    }
