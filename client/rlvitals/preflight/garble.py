"""T17 and T18: what damaged text in the data becomes in this vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rlvitals.guard import outcome
from rlvitals.preflight.data_faults import Fault
from rlvitals.preflight.data_oddities import oddities
from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.passage import Passage
from rlvitals.preflight.tokenizer_facts import TokenizerFacts

BOM = "\ufeff"
_NO_DATA = "no data was given"
_SPELT = {Fault.REPLACEMENT: "\ufffd", Fault.MOJIBAKE: "锟斤拷"}
_TYPE_ERROR = ": the tokenizer refuses such a text with a TypeError"


def check_bom(tokens: TokenizerFacts, passages: Sequence[Passage]) -> Iterator[Finding]:
    """T17: no text starts with or holds U+FEFF."""
    if not passages:
        yield Finding(check="T17", verdict=Verdict.SKIPPED, subject="No BOM in texts", evidence=_NO_DATA)
        return
    marked = [passage for passage in passages if BOM in passage.text]
    ids = tokens.show(tokens.encode(BOM))
    if not marked:
        fact = f"none in {len(passages):,} texts (it would be {ids})"
        yield Finding(check="T17", verdict=Verdict.OK, subject="No BOM in texts", evidence=fact)
        return
    yield Finding(
        check="T17",
        verdict=Verdict.WARN,
        subject="BOM in texts",
        evidence=f"U+FEFF in {len(marked):,} of {len(passages):,} texts becomes {ids}, which the model rarely saw",
        fix="read the files with encoding='utf-8-sig' and strip U+FEFF",
        where=marked[0].where,
    )


def check_garble(tokens: TokenizerFacts, passages: Iterable[Passage]) -> Iterator[Finding]:
    """T18: no U+FFFD, controls, noncharacters, private use, bidi controls, lone surrogates, CRLF or mojibake."""
    counts: Counter[Fault] = Counter()
    first: dict[Fault, tuple[str, str]] = {}
    looked = 0
    for passage in passages:
        looked += 1
        for fault, example in _odd(passage.text).items():
            counts[fault] += 1
            first.setdefault(fault, (example, passage.where))
    if not counts:
        verdict = Verdict.OK if looked else Verdict.SKIPPED
        what = f"none in {looked:,} texts" if looked else _NO_DATA
        yield Finding(check="T18", verdict=verdict, subject="No garbled text", evidence=what)
    for fault, count in counts.most_common():
        example, where = first[fault]
        yield Finding(
            check="T18",
            verdict=Verdict.WARN,
            subject=f"Garbled data: {fault.value.replace('_', ' ')}",
            evidence=f"{count:,} of {looked:,} texts, first {example}{_as_ids(tokens, fault)}",
            fix="decode the source with its true encoding and drop what stays damaged",
            where=where,
        )


def _odd(text: str) -> dict[Fault, str]:
    found = dict(oddities(text))
    found.pop(Fault.BOM_INSIDE, None)
    if "\r\n" in text:
        found.pop(Fault.CARRIAGE_RETURN, None)
        found[Fault.CRLF] = r"\r\n"
    return found


def _as_ids(tokens: TokenizerFacts, fault: Fault) -> str:
    if fault is Fault.SURROGATE:
        return _TYPE_ERROR
    spelt = _SPELT.get(fault)
    ids = outcome(tokens.encode, spelt)[0] if spelt else None
    return f"; {spelt!r} is {tokens.show(ids)} here: the model can reproduce it" if ids else ""
