"""What may be wrong with a file of rows, and where: counts with the first few places, bounded whatever comes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

SHOWN = 5
"""Places kept of each fault; all are counted."""
DETAIL_CHARS = 160


class Fault(str, Enum):
    """One kind of damage. A row counts once for each kind."""

    UNREADABLE = "unreadable"
    STOPPED = "stopped"
    NO_ROWS = "no_rows"
    BOM_AT_START = "bom_at_start"
    BOM_INSIDE = "bom_inside"
    INVALID_UTF8 = "invalid_utf8"
    REPLACEMENT = "replacement"
    CONTROL = "control"
    BIDI = "bidi"
    NONCHARACTER = "noncharacter"
    PRIVATE_USE = "private_use"
    SURROGATE = "surrogate"
    CRLF = "crlf"
    CARRIAGE_RETURN = "carriage_return"
    MOJIBAKE = "mojibake"
    BROKEN_ROW = "broken_row"
    LONG_LINE = "long_line"
    NOT_AN_OBJECT = "not_an_object"
    OTHER_TYPE = "other_type"
    MISSING_KEY = "missing_key"
    EMPTY_PROMPT = "empty_prompt"
    EMPTY_ANSWER = "empty_answer"
    OVERLONG = "overlong"
    DUPLICATE = "duplicate"
    NO_TURN_START = "no_turn_start"
    NO_TURN_END = "no_turn_end"
    NO_TEMPLATE = "no_template"
    OTHER_TEMPLATE = "other_template"
    MARKERS_IN_CONTENT = "markers_in_content"
    NO_GENERATION_PROMPT = "no_generation_prompt"
    NEAR_MISS = "near_miss"
    ROLES = "roles"
    ANSWERED_PROMPT = "answered_prompt"
    NO_EOS = "no_eos"


@dataclass(frozen=True, slots=True)
class Spot:
    """One place: the line (or row, from 1) and what stands there. The detail is the data's own text: escape it."""

    line: int
    detail: str = ""


@dataclass(slots=True)
class Spots:
    count: int = 0
    first: list[Spot] = field(default_factory=list)

    def add(self, line: int, detail: str = "") -> None:
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(Spot(line, detail[:DETAIL_CHARS]))


@dataclass(slots=True)
class Ledger:
    """Faults of one file as they are met."""

    spots: dict[Fault, Spots] = field(default_factory=dict)

    def note(self, fault: Fault, line: int, detail: str = "") -> None:
        self.spots.setdefault(fault, Spots()).add(line, detail)

    def count(self, fault: Fault) -> int:
        return self.spots[fault].count if fault in self.spots else 0

    def take(self, fault: Fault, spots: Spots) -> None:
        """Enters what was collected apart, where it is only known at the end whether it is a fault."""
        if spots.count:
            self.spots[fault] = spots


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFacts:
    """What one file of rows holds. ``unit`` is what a place counts: ``line`` or ``row``.

    ``rows`` were read, ``duplicates_sampled`` says that the file was too large to know each duplicate, so that
    their number is an estimate. ``prompt_key`` and ``answer_key`` are the columns taken for prompt and answer,
    empty where none was found. ``template`` names the turn markers met, empty for none.
    """

    name: str
    unit: str = "line"
    size_bytes: int = 0
    rows: int = 0
    spots: Mapping[Fault, Spots] = field(default_factory=dict)
    prompt_key: str = ""
    answer_key: str = ""
    template: str = ""
    row_limit: str = ""
    duplicates_sampled: bool = False

    def count(self, fault: Fault) -> int:
        return self.spots[fault].count if fault in self.spots else 0
