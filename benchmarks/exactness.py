"""Counts of U+FFFD from ids against each tokenizer's own decode, and byte tokens in healthy text of many scripts.

``python -m benchmarks.exactness --write`` also writes the tables into docs/tokenizers.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.published import Published, installed
from benchmarks.sentences import HEALTHY
from rlvitals.probes.decoding import decoded_replacements
from rlvitals.probes.text import pack, tally_text
from rlvitals.probes.tokens import BYTE_PIECES, TokenClass, TokenRanges, TokenTable

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tokenizers.md"
ROWS, WIDTH = 256, 256
DAMAGED_SHARE = 0.2
NOISE = "uniform random ids"
CLAIMED = (151_648, 151_903)
"""The range that is popularly taken for Qwen's byte tokens."""

Ids = npt.NDArray[np.int64]


def main(arguments: Sequence[str] = ()) -> None:
    blocks = tables()
    for name, block in blocks.items():
        print(f"\n{name}\n\n{block}", end="")
    if "--write" in arguments:
        page = PAGE.read_text(encoding="utf-8")
        for name, block in blocks.items():
            page = between_markers(page, name, block)
        PAGE.write_text(page, encoding="utf-8")


def tables() -> dict[str, str]:
    """Markdown by the name of its place in docs/tokenizers.md."""
    found = installed()
    exact, rates, census = [], {}, ""
    for published in found:
        table = TokenTable.read(published.tokenizer, published.rows)
        exact.append(_exactness(published, table))
        if published.encode is not None:
            rates[published.name] = _base_rates(published.encode, table)
        if published.name == "Qwen3":
            census = table.range_census(TokenRanges(byte_ids=[CLAIMED]))
    heads = ["tokenizer", "family", "ids tried", "U+FFFD printed", "completions that disagree"]
    return {
        "base rates": _markdown(["", *rates], zip((*HEALTHY, NOISE), *rates.values(), strict=True)),
        "exactness": _markdown(heads, exact),
        "census": f"```text\n{census}\n```\n",
        "sources": _markdown(["tokenizer", "package"], ((p.name, p.source) for p in found)),
    }


def between_markers(page: str, name: str, block: str) -> str:
    """``page`` with ``block`` in its place. Raises ValueError for a page that has none."""
    begin, end = f"<!-- {name}: ", f"<!-- end of {name} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"{PAGE.name}: expected one place for {name!r}")
    head, rest = page.split(begin)
    return f"{head}{begin}{rest.split(chr(10), 1)[0]}\n{block}{end}{rest.split(end)[1]}"


def _exactness(published: Published, table: TokenTable) -> tuple[str, ...]:
    tried = printed = wrong = 0
    for rows in _trials(published, table):
        for skip in (False, True):
            ids, lengths = pack(rows)
            expected = decoded_replacements(table, ids, lengths, skip_special=skip)
            seen = np.array([text.count("\ufffd") for text in published.decode(rows, skip)])
            tried, printed = tried + int(lengths.sum()), printed + int(seen.sum())
            wrong += int((expected != seen).sum())
    return published.name, table.family.value, f"{tried:,}", f"{printed:,}", f"**{wrong}**"


def _trials(published: Published, table: TokenTable) -> Iterator[list[list[int]]]:
    """Completions: noise, noise of which half are byte pieces, healthy text, damaged text."""
    draw = np.random.default_rng(20_210_823)
    known = np.flatnonzero(table.classes[: table.rows] != TokenClass.UNASSIGNED)
    noise = draw.choice(known, (ROWS, WIDTH))
    yield noise.tolist()
    pieces = known[np.isin(table.classes[known], BYTE_PIECES)]
    yield np.where(draw.random(noise.shape) < 0.5, draw.choice(pieces, noise.shape), noise).tolist()
    if published.encode is None:
        return
    healthy = [published.encode(text) for text in HEALTHY.values()]
    yield healthy
    yield [_damaged(row, known, draw) for row in healthy for _ in range(8)]


def _damaged(row: list[int], known: Ids, draw: np.random.Generator) -> list[int]:
    """Of the ids that were hit half are left out and half are replaced."""
    dice, others = draw.random(len(row)), draw.choice(known, len(row))
    hit = np.where(dice < DAMAGED_SHARE / 2, others, row)
    return [int(i) for i, chance in zip(hit, dice, strict=True) if not DAMAGED_SHARE / 2 <= chance < DAMAGED_SHARE]


def _base_rates(encode: Callable[[str], list[int]], table: TokenTable) -> list[str]:
    """Share of byte pieces by kind of text. Raises ValueError if healthy text were counted as ill-formed."""
    noise = np.random.default_rng(1).integers(0, table.rows, (ROWS, WIDTH)).tolist()
    found = []
    for what, rows in [*((name, [encode(text)]) for name, text in HEALTHY.items()), (NOISE, noise)]:
        measured = tally_text(table, *pack(rows))[0].measured().values
        if what != NOISE and measured["text.invalid_utf8_count"]:
            raise ValueError(f"healthy text ({what}) was counted as ill-formed")
        share = measured["text.byte_piece_ratio"]
        found.append(f"{share:.2%}" if what == NOISE else f"{share:.0%}" if share else "0")
    return found


def _markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---", *["---:" for _ in heads[1:]]], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    main(sys.argv[1:])
