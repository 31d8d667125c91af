"""Lengths of completions, truncation and stops (signals 1.7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlvitals.contract.report import Extreme
from rlvitals.probes.arguments import ShapeError
from rlvitals.probes.arrays import Flags, Whole, flags, whole
from rlvitals.probes.sketch import Sketch
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

# four bins per octave up to 2**18 tokens to draw, sixteen to choose a limit by
_LOW, _HIGH, _BINS, _FINE_BINS = 1.0, float(1 << 18), 72, 288

NO_CAP = "no length limit is known: truncation cannot be told from a stop"
NO_STOP_IDS = "no stop ids are known"
SUGGESTED = ("length.suggested_cap", "length.suggested_cap_confidence")

# what engines and trainers say of an answer's end; a word that is not here leaves it to the rule
_WORDS = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_id", "stop_str", "stop_sequence", "completed"), 1),
    **dict.fromkeys(("length", "max_tokens", "max_length", "truncated"), 2),
    **dict.fromkeys(("tool_calls", "tool_call", "function_call"), 3),
    **dict.fromkeys(("abort", "aborted", "cancelled", "error", "failed", "timeout", "content_filter"), 4),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """How each of (B,) completions ended; None where it cannot be known. ``finished`` counts tool calls too."""

    stopped: Flags | None
    truncated: Flags | None
    finished: Flags | None


@uncompiled
def tally_lengths(
    lengths: Any,
    last_ids: Any,
    stop_ids: Collection[int],
    cap: Any,
    *,
    truncated: Any = None,
    finish_reasons: Sequence[Any] | None = None,
    total_lengths: Any = None,
    sample_offset: int = 0,
) -> Tally:
    """Tallies one part of a step's completions.

    ``lengths`` (B,) tokens that the policy chose, stop id included; ``last_ids`` (B,) the last of them (any value
    where the length is 0); ``stop_ids`` *all* ids that end a completion (see `stop_ids_of`); ``cap`` the limit in
    tokens, one or (B,) where the context leaves less room for some, None where unknown. ``total_lengths``
    (B,) is what counts against the cap where tools wrote a part. The engine's own word wins where it is given:
    ``finish_reasons`` (B,) row by row (None or an unknown word goes by the rule), or ``truncated`` (B,) for all.
    ``sample_offset`` is added to the row to give the sample's number in the step.
    """
    size, last = whole(lengths, "lengths").ravel(), whole(last_ids, "last_ids").ravel()
    if size.shape != last.shape:
        raise ShapeError("lengths and last_ids", "one last id per completion", f"{last.size} of {size.size}")
    total = size if total_lengths is None else _per_completion("total_lengths", total_lengths, size)
    limit = None if cap is None else _per_completion("cap", cap, size)
    ends = _ends(size, total, last, stop_ids, limit, truncated, finish_reasons)
    tally = Tally(
        counts={
            "length.completions": int(size.size),
            "length.tokens": int(size.sum()),
            "length.tokens_sq": int(np.square(size).sum()),
            "length.empty": int(((size == 0) | ((size == 1) & np.isin(last, list(stop_ids)))).sum()),
        },
        minima={"length.min": _at(size, int(size.argmin()), sample_offset)} if size.size else {},
        maxima={"length.max": _at(size, int(size.argmax()), sample_offset)} if size.size else {},
        sketches={"length.tokens": Sketch.of(size, low=_LOW, high=_HIGH, bins=_BINS)},
    )
    return tally + _how_they_ended(ends, bool(stop_ids)) + _at_cap(total, limit) + _survival(total, ends)


def _per_completion(name: str, value: Any, size: Whole) -> Whole:
    """One whole number for each completion, or one for all of them."""
    numbers = whole(value, name).ravel()
    if numbers.size not in (1, size.size):
        raise ShapeError(name, f"one number, or one for each of {size.size} completions", str(numbers.size))
    return np.broadcast_to(numbers, size.shape)


def stop_ids_of(*sources: Any) -> frozenset[int]:
    """All ids that end a completion, from tokenizers, generation configs, model configs, ids or lists of ids.

    The tokenizer's own ``eos_token_id`` is not enough: a generation config may stop at several ids. None and what
    has no such id add nothing.
    """
    found: set[int] = set()
    for source in sources:
        ids = getattr(source, "eos_token_id", source)
        if isinstance(ids, (list, tuple, set, frozenset)):
            found |= {int(i) for i in ids if i is not None}
        elif isinstance(ids, (int, np.integer)) and not isinstance(ids, bool):
            found.add(int(ids))
    return frozenset(found)


def _ends(
    size: Whole,
    total: Whole,
    last: Whole,
    stop_ids: Collection[int],
    limit: Whole | None,
    truncated: Any,
    reasons: Sequence[Any] | None,
) -> Ends:
    stopped = np.isin(last, np.fromiter(stop_ids, np.int64, len(stop_ids))) & (size > 0) if stop_ids else None
    cut = None if limit is None or stopped is None else ~stopped & (total >= limit)
    if truncated is not None:
        cut = flags(truncated).ravel()
        if cut.shape != size.shape:
            raise ShapeError("truncated", "one flag per completion", f"{cut.size} of {size.size}")
    if reasons is None:
        rest = ~cut if truncated is not None and cut is not None else None
        return Ends(stopped=stopped, truncated=cut, finished=rest if stopped is None else stopped)
    if len(reasons) != size.size:
        raise ShapeError("finish_reasons", "one per completion", f"{len(reasons)} of {size.size}")
    told = np.array([_kind(reason) for reason in reasons], np.int64).reshape(size.shape)
    return Ends(
        stopped=_overruled(stopped, told, told == 1),
        truncated=_overruled(cut, told, told == 2),
        finished=_overruled(stopped, told, (told == 1) | (told == 3)),
    )


def _kind(reason: Any) -> int:
    """0 nothing said, 1 stopped, 2 cut, 3 a tool's turn, 4 aborted; of a word, an enum or ``{"type": word}``."""
    word = reason.get("type") if isinstance(reason, Mapping) else getattr(reason, "value", reason)
    return _WORDS.get(str(word).lower(), 0)


def _overruled(rule: Flags | None, told: Whole, engine: Flags) -> Flags | None:
    """The engine's word where there is one, else the rule; unknown as soon as one row has neither."""
    if (told > 0).all():
        return engine
    return None if rule is None else np.asarray(np.where(told > 0, engine, rule))


def _how_they_ended(ends: Ends, stop_ids: bool) -> Tally:
    counts: dict[str, int] = {}
    missing: dict[str, str] = {}
    why = NO_CAP if stop_ids else NO_STOP_IDS
    if ends.truncated is not None:
        counts["length.truncated"] = int(ends.truncated.sum())
    else:
        missing["length.truncation_rate"] = why
    if ends.stopped is not None:
        counts["length.stopped"] = int(ends.stopped.sum())
    else:
        missing["length.stop_rate"] = NO_STOP_IDS
    if ends.truncated is not None and ends.stopped is not None:
        counts["length.aborted"] = int((~ends.stopped & ~ends.truncated).sum())
    else:
        missing["length.aborted_rate"] = why
    return Tally(counts=counts, missing=missing)


def _at_cap(total: Whole, limit: Whole | None) -> Tally:
    if limit is None:
        return Tally.absent(("length.at_cap_share",), "no length limit is known")
    return Tally(counts={"length.capped": int(total.size), "length.at_cap": int((total >= limit).sum())})


def _survival(total: Whole, ends: Ends) -> Tally:
    """Lengths of the answers that ended by themselves, and of those that something cut."""
    if ends.finished is None:
        return Tally.absent(SUGGESTED, NO_STOP_IDS)
    ended = total[ends.finished]
    return Tally(
        sketches={
            "length.ended": Sketch.of(ended, low=_LOW, high=_HIGH, bins=_FINE_BINS),
            "length.cut": Sketch.of(total[~ends.finished], low=_LOW, high=_HIGH, bins=_FINE_BINS),
        },
        maxima={"length.longest_ended": Extreme(value=float(ended.max()))} if ended.size else {},
    )


def _at(size: Whole, row: int, offset: int) -> Extreme:
    return Extreme(value=float(size[row]), sample=row + offset)
