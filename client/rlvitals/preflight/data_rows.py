"""Looks at one row after another: its shape, its characters, its prompt and answer, its double."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

from rlvitals.preflight.data_faults import Fault, Ledger, Spots
from rlvitals.preflight.data_fields import Columns, Example, Turn, example, strings, text_of
from rlvitals.preflight.data_lengths import CountTokens, Lengths
from rlvitals.preflight.data_oddities import oddities
from rlvitals.preflight.data_templates import (
    Template,
    breaks,
    hinted,
    near_misses,
    role_breaks,
    template_of,
    waits,
)

Shape = tuple[tuple[str, ...], tuple[str, ...]]
"""Keys of a row, and the kind of each value."""
_KINDS: dict[type, str] = {
    type(None): "null",
    bool: "bool",
    int: "number",
    float: "number",
    str: "string",
    dict: "object",
    list: "list",
    tuple: "list",
}
SHAPES_MAX, HASHES_MAX = 64, 1 << 18
ROW_BYTES_MAX = 1 << 20
"""A row of more is over-long, where no token limit is given."""
COUNTED_ROWS_MAX = 20_000
"""Rows near the limit whose tokens are counted one by one; beyond, an over-long row is told by its bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """``count_tokens`` is the tokenizer's own count; ``row_tokens_max`` what prompt and answer may have together.

    ``template`` is the marker of the turn start that the tokenizer's chat template writes (``<|im_start|>``),
    empty where it is unknown; ``specials`` are the tokenizer's special tokens.
    """

    prompt_key: str = ""
    answer_key: str = ""
    count_tokens: CountTokens | None = None
    row_tokens_max: int | None = None
    template: str = ""
    specials: frozenset[str] = frozenset()


class Rows:
    """Bounded whatever comes: shapes, hashes and samples have a limit of their own."""

    def __init__(self, ledger: Ledger, options: DataOptions) -> None:
        self.ledger, self.options = ledger, options
        self.count = 0
        self.columns: Columns | None = None
        self.prompts, self.answers = Lengths(options.count_tokens), Lengths(options.count_tokens)
        self.templates: Counter[str] = Counter()
        self.doubles = Doubles(ledger)
        self._shapes: dict[Shape, Spots] = {}
        self._bare, self._open_ends, self._ends = Spots(), Spots(), 0
        self._counted = 0

    def add(self, line: int, value: object, raw: bytes, *, look_inside: bool) -> None:
        """``raw`` tells rows apart and hints at markers; ``look_inside`` if its strings may hold oddities."""
        self.count += 1
        if look_inside:
            self.scan(line, value)
        if not isinstance(value, Mapping):
            self.ledger.note(Fault.NOT_AN_OBJECT, line, f"{_kind(value)}: {str(value)[:40]!r}")
            return
        self.doubles.add(line, raw)
        self._shape(line, value)
        if self.columns is None:
            self.columns = Columns.of(value, self.options.prompt_key, self.options.answer_key)
        if self.columns.prompt:
            self._example(line, example(value, self.columns), hinted(raw))

    def scan(self, line: int, value: object) -> None:
        """Notes the oddities of every string in a value, each kind once for the row."""
        found: dict[Fault, str] = {}
        for text in strings(value):
            for fault, detail in oddities(text).items():
                found.setdefault(fault, detail)
        for fault, detail in found.items():
            self.ledger.note(fault, line, detail)

    def close(self) -> None:
        """What only all rows together tell: rows of another shape, without a template, without an end."""
        self._judge_shapes()
        self.doubles.close()
        rendered = sum(self.templates.values())
        if rendered > self._bare.count:
            self.ledger.take(Fault.NO_TEMPLATE, self._bare)
        if self._ends:
            self.ledger.take(Fault.NO_EOS, self._open_ends)

    # -- shape ----------------------------------------------------------------------------------------------

    def _shape(self, line: int, row: Mapping[str, object]) -> None:
        shape = (tuple(row), tuple(map(_kind, row.values())))
        spots = self._shapes.get(shape)
        if spots is None:
            if len(self._shapes) >= SHAPES_MAX:
                return
            spots = self._shapes[shape] = Spots()
        spots.add(line)

    def _judge_shapes(self) -> None:
        if not self._shapes:
            return
        usual = _kinds(max(self._shapes.items(), key=lambda pair: pair[1].count)[0])
        for shape, spots in self._shapes.items():
            kinds = _kinds(shape)
            for key, kind in usual.items():
                other = kinds.get(key, "null")
                if other != kind and kind != "null":
                    fault = Fault.MISSING_KEY if other == "null" else Fault.OTHER_TYPE
                    text = f"no {key!r}" if other == "null" else f"{key!r} is a {other}, elsewhere a {kind}"
                    _enter(self.ledger, fault, text, spots)

    # -- prompt and answer ----------------------------------------------------------------------------------

    def _example(self, line: int, found: Example, marked: bool) -> None:
        prompt, answer = text_of(found.prompt), text_of(found.answer)
        if found.prompt is not None and not prompt.strip():
            self.ledger.note(Fault.EMPTY_PROMPT, line)
        if found.answer is not None and not answer.strip():
            self.ledger.note(Fault.EMPTY_ANSWER, line)
        size = self.prompts.add(prompt)
        if found.answer is not None:
            size += self.answers.add(answer)
        self._overlong(line, size, prompt, answer)
        noted: dict[Fault, str] = {}
        if isinstance(found.prompt, list):
            self._turns(found.prompt, noted)
        self._markers(line, found, marked, noted)
        for fault, detail in noted.items():
            self.ledger.note(fault, line, detail)

    def _overlong(self, line: int, size: int, prompt: str, answer: str) -> None:
        limit = self.options.row_tokens_max
        if limit is None or self.options.count_tokens is None:
            if size > ROW_BYTES_MAX:
                self.ledger.note(Fault.OVERLONG, line, f"{size:,} bytes")
            return
        # no tokenizer makes more tokens than bytes, so most rows need no counting
        if size <= limit:
            return
        self._counted += 1
        if self._counted <= COUNTED_ROWS_MAX and size <= ROW_BYTES_MAX:
            tokens = self.options.count_tokens(prompt) + self.options.count_tokens(answer)
            if tokens > limit:
                self.ledger.note(Fault.OVERLONG, line, f"{tokens:,} tokens")
        elif size > 8 * limit:
            self.ledger.note(Fault.OVERLONG, line, f"{size:,} bytes")

    def _turns(self, turns: list[Turn], noted: dict[Fault, str]) -> None:
        for fault, detail in role_breaks([role for role, _ in turns]):
            noted.setdefault(fault, detail)
        if turns and turns[-1][0] in ("assistant", "model"):
            noted.setdefault(Fault.ANSWERED_PROMPT, f"ends with {turns[-1][1][:40]!r}")
        # an empty system turn keeps a template from writing its own
        empty = next((at for at, (role, text) in enumerate(turns) if not text.strip() and role != "system"), None)
        if empty is not None and any(text.strip() for _, text in turns):
            noted.setdefault(Fault.EMPTY_PROMPT, f"turn {empty + 1} ({turns[empty][0]}) is empty")

    def _markers(self, line: int, found: Example, marked: bool, noted: dict[Fault, str]) -> None:
        if not marked:
            if isinstance(found.prompt, str):
                self._bare.add(line, repr(found.prompt[:40]))
            return
        text = text_of(found.prompt) + text_of(found.answer)
        near = next(near_misses(text, self.options.specials), None)
        if near is not None:
            noted[Fault.NEAR_MISS] = repr(near)
        template = template_of(text)
        if template is None:
            if isinstance(found.prompt, str):
                self._bare.add(line, repr(found.prompt[:40]))
        elif isinstance(found.prompt, list):
            noted[Fault.MARKERS_IN_CONTENT] = f"{template.marker} in a message's content"
        else:
            self._rendered(line, found, template, noted)

    def _rendered(self, line: int, found: Example, template: Template, noted: dict[Fault, str]) -> None:
        self.templates[template.marker] += 1
        if self.options.template and template.marker != self.options.template:
            noted[Fault.OTHER_TEMPLATE] = f"{template.marker} ({template.name})"
        prompt, answer = text_of(found.prompt), text_of(found.answer)
        answered = found.whole or bool(answer)
        for fault, detail in breaks(prompt + answer, template, answered=answered):
            if fault is Fault.NO_EOS:
                self._open_ends.add(line, detail)
                answered = False
            else:
                noted.setdefault(fault, detail)
        self._ends += answered
        if answer and not found.whole and not template.start.search(answer) and not waits(prompt, template):
            noted.setdefault(Fault.NO_GENERATION_PROMPT, f"ends with {prompt[-30:]!r}")


class Doubles:
    """Rows that were there before. Beyond `HASHES_MAX` different rows, a hash-chosen share of them is followed."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._first: dict[int, int] = {}
        self._again: Counter[int] = Counter()
        self._spots = Spots()
        self.every = 1

    def add(self, line: int, raw: bytes) -> None:
        key = int.from_bytes(blake2b(raw.strip(), digest_size=8).digest(), "little")
        if key % self.every:
            return
        first = self._first.setdefault(key, line)
        if first != line:
            self._again[key] += 1
            self._spots.add(line, f"as {first}")
        elif len(self._first) > HASHES_MAX:
            self.every *= 2
            self._first = {k: v for k, v in self._first.items() if k % self.every == 0}
            self._again = Counter({k: n for k, n in self._again.items() if k % self.every == 0})

    def close(self) -> None:
        if self._spots.count:
            self._spots.count = max(len(self._spots.first), sum(self._again.values()) * self.every)
            self._ledger.take(Fault.DUPLICATE, self._spots)


def _enter(ledger: Ledger, fault: Fault, text: str, spots: Spots) -> None:
    for spot in spots.first:
        ledger.note(fault, spot.line, text)
    ledger.spots[fault].count += spots.count - len(spots.first)


def _kinds(shape: Shape) -> dict[str, str]:
    return dict(zip(*shape, strict=True))


def _kind(value: object) -> str:
    known = _KINDS.get(type(value))
    if known is not None:
        return known
    return "object" if isinstance(value, Mapping) else "value"
