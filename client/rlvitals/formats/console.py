"""The text that a trainer prints, from any trainer: one reader for all, since real logs mix them.

It knows verl's ``step:7 - …`` lines, printed dictionaries (TRL, ms-swift, LLaMA-Factory, open-r1, unsloth; with
``step 7:``, ``rollout 7:`` or ``Global step 7:`` before them: slime, OpenRLHF), Megatron's iteration lines, tables
of notebooks, sections under a heading, and ``name: value`` lines. Everything between them is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from rlvitals.formats import braces, pairs, sections
from rlvitals.formats.kinds import STEP_NAMES, is_metric, is_record, kind_of_names, looks_logged, own_step
from rlvitals.formats.line import LENGTH_MAX, fragments, is_progress, worker
from rlvitals.formats.numbers import ENDINGS, number, step_of
from rlvitals.formats.row import BadLine, Found, Row, RowKind
from rlvitals.formats.table import Table

WRAPPED_LINES_MAX = 200
_BEFORE = re.compile(
    r"(?:[A-Za-z][\w-]*-)?(?P<kind>global[_ ]step|step|rollout|perf|eval|iteration|passrate|multi_turn)"
    r"[ _](?P<id>\d+)\s*(?:/\s*\d+)?\s*:\s*$",
    re.IGNORECASE,
)
_LONE = re.compile(
    r"\s*(?:wandb:\s+|[•·*▪►-]\s+)?"
    r"(?P<name>[A-Za-z][\w./@%()\[\] -]{0,80}?)\s*(?::|=)\s*(?P<value>\S+)\s*$"
)
_KINDS = {"rollout": RowKind.ROLLOUT, "perf": RowKind.PERF, "eval": RowKind.EVAL, "passrate": RowKind.EVAL}

Items = Sequence["Row | BadLine"]
NONE: Items = ()


@dataclass(slots=True)
class _Open:
    """A record that its line did not finish."""

    line: int
    text: str
    lines: int = 1


@dataclass(slots=True)
class _Worker:
    """What one process is in the middle of."""

    verl: _Open | None = None
    braces: _Open | None = None
    lone: dict[str, float] = field(default_factory=dict)
    lone_line: int = 0
    heading: int | None = None


class Console:
    """Reads line by line; a wrapped record is given out when the next one begins, or at `end`."""

    def __init__(self) -> None:
        self._workers: dict[str, _Worker] = {}
        self._table = Table()

    def read(self, line: int, text: str) -> Found:
        if len(text) > LENGTH_MAX:
            return [BadLine.of(line, f"a line of at most {LENGTH_MAX} characters was expected", text)]
        found: list[Row | BadLine] = []
        for fragment in fragments(text.lstrip("\ufeff") if line == 1 else text):
            if not is_progress(fragment):
                who, rest = worker(fragment)
                found += self._read(line, who, rest)
        return found

    def end(self) -> Found:
        found: list[Row | BadLine] = []
        for who, state in self._workers.items():
            found += [*_finish_verl(who, state), *_give_up(state), *_finish_lone(who, state)]
        self._workers.clear()
        return found

    def _read(self, line: int, who: str, text: str) -> Items:
        state = self._workers.get(who)
        if state is None:
            state = self._workers[who] = _Worker()
        before: Items = NONE
        if state.braces is not None:
            found = _go_on(who, state, text)
            if found is not None:
                return found
            before = _give_up(state)
        verl = pairs.VERL.search(text) if "step:" in text else None
        if state.verl is not None:
            if verl is None and _continues(state.verl, text):
                state.verl.text += " " + text.strip()
                state.verl.lines += 1
                return before
            before = [*before, *_finish_verl(who, state)]
        if verl is not None:
            before = [*before, *_finish_lone(who, state)]
            state.verl = _Open(line, text[verl.start() :].strip(" |"))
            return before
        after = self._other(line, who, state, text)
        return [*before, *after] if before else after

    def _other(self, line: int, who: str, state: _Worker, text: str) -> Items:
        start = braces.find(text) if "{" in text else -1
        if start >= 0:
            return [*_finish_lone(who, state), *_begin_braces(line, who, state, text, start)]
        megatron = pairs.MEGATRON.search(text) if "iteration" in text else None
        if megatron is not None:
            values, missing, _ = pairs.megatron(text[megatron.end() :])
            return [Row(line=line, step=step_of(megatron[1]), values=values, missing=missing, source=who)]
        piped = sections.piped(text) if "|" in text else None
        if piped is not None:
            return [Row(line=line, step=step_of(piped[0]), values=piped[1], source=who)]
        row = self._table.read(line, who, text)
        if row is not None:
            return [row]
        return NONE if self._table.heads(text) else _lone(line, who, state, text)


def _continues(record: _Open, text: str) -> bool:
    """Whether ``text`` is the rest of a wrapped verl line: it goes on with a pair, or the pair was cut."""
    if record.lines >= WRAPPED_LINES_MAX:
        return False
    stripped = text.strip()
    return (
        stripped.startswith("- ")
        or record.text.endswith((" -", ":", "/"))
        or (record.text[-1:] not in "0123456789.)" and SEPARATED.match(stripped) is not None)
    )


SEPARATED = re.compile(r"[^\s:{}]{1,120}:\S+ - \S")


def _finish_verl(who: str, state: _Worker) -> Items:
    record, state.verl = state.verl, None
    if record is None:
        return NONE
    head = pairs.VERL.match(record.text)
    if head is None:
        return NONE
    found: list[Row | BadLine] = []
    values, missing, unread = pairs.verl(record.text[head.end() :])
    if unread:
        reason = f"name:value was expected, {len(unread)} of {len(values) + len(unread)} are not"
        found.append(BadLine.of(record.line, reason, unread[0]))
    if values or missing:
        kind = kind_of_names(values, RowKind.TRAIN)
        step = step_of(head[1])
        found.append(Row(line=record.line, step=step, values=values, missing=missing, source=who, kind=kind))
    return found


def _begin_braces(line: int, who: str, state: _Worker, text: str, start: int) -> Items:
    found: list[Row | BadLine] = []
    while start >= 0:
        end = braces.close(text, start)
        if end < 0:
            state.braces = _Open(line, text)
            break
        found += _braces(line, who, text, start, end)
        text = text[end:]
        start = braces.find(text)
    return found


def _go_on(who: str, state: _Worker, text: str) -> Items | None:
    """Adds a line to an open dictionary; None if it can't be a part of it."""
    record = state.braces
    if record is None:
        return None
    longer = f"{record.text} {text.strip()}"
    fresh = pairs.VERL.search(text) is not None or _opens_anew(text)
    if fresh or record.lines >= WRAPPED_LINES_MAX or len(longer) > braces.LENGTH_MAX:
        return None
    record.text, record.lines = longer, record.lines + 1
    start = braces.find(longer)
    end = braces.close(longer, start)
    if end < 0:
        return NONE
    state.braces = None
    return _braces(record.line, who, longer, start, end)


def _opens_anew(text: str) -> bool:
    """Whether a dictionary begins in ``text``, and not as a value: a name in quotes would stand before it."""
    at = braces.find(text) if "{" in text else -1
    return at >= 0 and "'" not in text[:at] and '"' not in text[:at]


def _give_up(state: _Worker) -> Items:
    record, state.braces = state.braces, None
    if record is None or not looks_logged(record.text):
        return NONE
    return [BadLine.of(record.line, "a dictionary that closes was expected", record.text)]


def _braces(line: int, who: str, text: str, start: int, end: int) -> Items:
    try:
        values, missing = braces.flat(text[start:end])
    except braces.Unreadable as error:
        logged = looks_logged(text[start:end])
        return [BadLine.of(line, str(error), text[start:end])] if logged else NONE
    head = _BEFORE.search(text[:start])
    if not values and not missing:
        return NONE
    if head is None and not is_record([*values, *missing]):
        return NONE
    kind = _KINDS.get(head["kind"].lower(), RowKind.TRAIN) if head is not None else RowKind.TRAIN
    step = step_of(head["id"]) if head is not None else own_step(values)
    kind = kind_of_names(values, kind)
    return [Row(line=line, step=step, values=values, missing=missing, source=who, kind=kind)]


def _lone(line: int, who: str, state: _Worker, text: str) -> Items:
    """``name: value`` alone on a line; a name that comes again, or "step", begins the next record."""
    heading = sections.heading(text)
    if heading is not None:
        before = _finish_lone(who, state)
        state.heading = step_of(heading)
        return before
    told = sections.boxed(text)
    if not told:
        if not state.lone and text.rstrip()[-1:] not in ENDINGS:
            return NONE
        found = _LONE.match(text) if ":" in text or "=" in text else None
        if found is None:
            return _finish_lone(who, state) if state.heading is None else NONE
        value = number(found["value"])
        if value is None:
            return NONE
        told = {found["name"].strip(): value}
    return _take_lone(line, who, state, told)


def _take_lone(line: int, who: str, state: _Worker, told: dict[str, float]) -> Items:
    done: list[Row | BadLine] = []
    for name, value in told.items():
        if name in state.lone or (name.lower() in STEP_NAMES and state.lone):
            done += _finish_lone(who, state)
        if not state.lone:
            state.lone_line = line
        if len(state.lone) < sections.NAMES_MAX:
            state.lone[name] = value
    return done


def _finish_lone(who: str, state: _Worker) -> Items:
    values = state.lone
    if not values:
        return NONE
    state.lone = {}
    if not any(is_metric(name) or "/" in name for name in values):
        return NONE
    step = own_step(values)
    return [Row(line=state.lone_line, step=state.heading if step is None else step, values=values, source=who)]
