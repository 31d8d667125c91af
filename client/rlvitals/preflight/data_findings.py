"""D1 to D18: what the facts of a file of rows mean, and how to mend them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rlvitals.preflight.data_faults import DataFacts, Fault, Spots
from rlvitals.preflight.finding import Finding, Verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a fault means: ``subject`` says it, ``fix`` mends it (``{marker}`` is the file's own turn start)."""

    fault: Fault
    verdict: Verdict
    subject: str
    fix: str


@dataclass(frozen=True, slots=True)
class DataCheck:
    """One check id with the faults that it names, and what is said where none was met."""

    check: str
    subject: str
    judgements: tuple[Judgement, ...]


_WRITE_UTF8 = "write the file again as UTF-8: open(path, 'w', encoding='utf-8')"
_FTFY = "decode the source once more in its true encoding, or leave these rows out"
_LEAVE_OUT = "leave these rows out, or find what wrote them"

CHECKS: tuple[DataCheck, ...] = (
    DataCheck(
        "D1",
        "The file can be read to its end",
        (
            Judgement(Fault.UNREADABLE, Verdict.FATAL, "The file can't be read", "mend the file or its name"),
            Judgement(Fault.NO_ROWS, Verdict.FATAL, "The file holds no rows", "give the file that was meant"),
            Judgement(
                Fault.STOPPED,
                Verdict.FATAL,
                "Only the beginning of the file can be read",
                "write the file again; what follows was judged on its beginning only",
            ),
        ),
    ),
    DataCheck(
        "D2",
        "No byte order mark",
        (
            Judgement(
                Fault.BOM_AT_START,
                Verdict.WARN,
                "The file begins with a byte order mark",
                "save it without BOM: sed -i '1s/^\\xEF\\xBB\\xBF//' FILE; readers that do not expect it "
                "see a broken first row or a column name that begins with U+FEFF",
            ),
            Judgement(
                Fault.BOM_INSIDE,
                Verdict.WARN,
                "Byte order marks (U+FEFF) inside texts",
                "strip U+FEFF: text.replace('\\ufeff', ''); the model meets a token that it rarely saw",
            ),
        ),
    ),
    DataCheck(
        "D3",
        "All bytes are UTF-8",
        (Judgement(Fault.INVALID_UTF8, Verdict.FATAL, "Bytes that are not UTF-8", _WRITE_UTF8),),
    ),
    DataCheck(
        "D4",
        "No replacement characters",
        (
            Judgement(
                Fault.REPLACEMENT,
                Verdict.WARN,
                "U+FFFD: text that was already lost",
                "decode the source in its true encoding; a model that learns from these writes them",
            ),
        ),
    ),
    DataCheck(
        "D5",
        "No control characters",
        (
            Judgement(
                Fault.CONTROL,
                Verdict.WARN,
                "Control characters",
                "strip them; where LaTeX lost its backslash, write \\\\frac and not \\frac in JSON",
            ),
        ),
    ),
    DataCheck(
        "D6",
        "No direction overrides",
        (
            Judgement(
                Fault.BIDI,
                Verdict.WARN,
                "Bidirectional overrides: what you read is not what is encoded",
                "strip U+202A…U+202E and U+2066…U+2069",
            ),
        ),
    ),
    DataCheck(
        "D7",
        "No noncharacters, no private use",
        (
            Judgement(Fault.NONCHARACTER, Verdict.WARN, "Noncharacters (never text)", _LEAVE_OUT),
            Judgement(
                Fault.PRIVATE_USE,
                Verdict.WARN,
                "Private-use characters (icons of some font)",
                "replace them: most come from PDF or icon fonts and mean nothing elsewhere",
            ),
        ),
    ),
    DataCheck(
        "D8",
        "No lone surrogates",
        (
            Judgement(
                Fault.SURROGATE,
                Verdict.FATAL,
                "Lone surrogates: tokenizers refuse to encode them",
                "text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace'), or leave these rows out",
            ),
        ),
    ),
    DataCheck(
        "D9",
        "Line ends are \\n",
        (
            Judgement(Fault.CRLF, Verdict.INFO, "Lines end with CRLF", "sed -i 's/\\r$//' FILE"),
            Judgement(
                Fault.CARRIAGE_RETURN,
                Verdict.WARN,
                "Carriage returns inside texts",
                "text.replace('\\r\\n', '\\n'): \\r\\n is another token than the \\n of templates",
            ),
        ),
    ),
    DataCheck(
        "D10",
        "No mojibake",
        (Judgement(Fault.MOJIBAKE, Verdict.WARN, "Mojibake: text decoded in a wrong encoding", _FTFY),),
    ),
    DataCheck(
        "D11",
        "Every row parses",
        (
            Judgement(Fault.BROKEN_ROW, Verdict.FATAL, "Broken rows", "mend or remove them: a loader stops there"),
            Judgement(Fault.LONG_LINE, Verdict.FATAL, "Rows beyond all measure, not looked at", _LEAVE_OUT),
        ),
    ),
    DataCheck(
        "D12",
        "Every row has the same keys and types",
        (
            Judgement(Fault.NOT_AN_OBJECT, Verdict.FATAL, "Rows that are no objects", 'write {"prompt": …} a row'),
            Judgement(
                Fault.OTHER_TYPE,
                Verdict.FATAL,
                "Values of another type than in the other rows",
                "one type a column: a loader infers it from the first rows and stops at another",
            ),
            Judgement(
                Fault.MISSING_KEY,
                Verdict.WARN,
                "Rows without a key that the others have",
                "add the key, or leave these rows out; reward functions get None there",
            ),
        ),
    ),
    DataCheck(
        "D13",
        "No empty prompt or answer",
        (
            Judgement(Fault.EMPTY_PROMPT, Verdict.WARN, "Empty prompts or turns", _LEAVE_OUT),
            Judgement(Fault.EMPTY_ANSWER, Verdict.WARN, "Empty answers", _LEAVE_OUT),
        ),
    ),
    DataCheck(
        "D14",
        "No over-long row",
        (
            Judgement(
                Fault.OVERLONG,
                Verdict.WARN,
                "Over-long rows",
                "leave them out or cut them yourself: a trainer cuts silently, from the left, turn start first",
            ),
        ),
    ),
    DataCheck(
        "D15",
        "No row twice",
        (Judgement(Fault.DUPLICATE, Verdict.WARN, "Duplicate rows", "keep one of each: sort -u, or by key"),),
    ),
    DataCheck(
        "D16",
        "Turn markers are whole and of one template",
        (
            Judgement(
                Fault.NO_TURN_START,
                Verdict.FATAL,
                "A turn without its start",
                "write {marker} and the role before each turn; best let tokenizer.apply_chat_template do it",
            ),
            Judgement(
                Fault.NO_TEMPLATE,
                Verdict.FATAL,
                "Rows without the template of the others",
                "render every row by the same template: it begins with {marker}",
            ),
            Judgement(
                Fault.NO_TURN_END,
                Verdict.FATAL,
                "A turn without its end",
                "close each turn before the next {marker}",
            ),
            Judgement(
                Fault.OTHER_TEMPLATE,
                Verdict.FATAL,
                "Rows rendered by another template than the tokenizer's",
                "render the rows again by tokenizer.apply_chat_template",
            ),
            Judgement(
                Fault.MARKERS_IN_CONTENT,
                Verdict.WARN,
                "Turn markers inside a message's content",
                "give plain content: the trainer applies the template itself, and these would become real turns",
            ),
            Judgement(
                Fault.NEAR_MISS,
                Verdict.WARN,
                "Damaged special tokens",
                "write the token exactly: a damaged one is ordinary text that starts and stops nothing",
            ),
        ),
    ),
    DataCheck(
        "D17",
        "Roles are in order, prompts wait for an answer",
        (
            Judgement(
                Fault.ROLES, Verdict.WARN, "Roles unknown or out of order", "system first, then user, assistant"
            ),
            Judgement(
                Fault.ANSWERED_PROMPT,
                Verdict.WARN,
                "Prompts that end with the assistant's answer",
                "take the last assistant turn out of the prompt: nothing is left to be answered",
            ),
            Judgement(
                Fault.NO_GENERATION_PROMPT,
                Verdict.WARN,
                "Prompts that do not end with the assistant's turn start",
                "apply_chat_template(…, add_generation_prompt=True)",
            ),
        ),
    ),
    DataCheck(
        "D18",
        "Answers end with their end of turn",
        (
            Judgement(
                Fault.NO_EOS,
                Verdict.WARN,
                "Answers without an end of turn, though others have it",
                "end each answer with the template's end of turn: what never sees it learns not to stop",
            ),
        ),
    ),
)


def judge_data(facts: DataFacts, spelt: Mapping[Fault, str] | None = None) -> Iterator[Finding]:
    """Every check of one file: a finding for each fault met, else one that says it is well.

    ``spelt`` says what a kind of damage becomes in the tokenizer's vocabulary.
    """
    unread = facts.count(Fault.UNREADABLE) + facts.count(Fault.NO_ROWS) > 0
    for check in CHECKS:
        met = [j for j in check.judgements if facts.count(j.fault)]
        for judgement in met:
            yield _finding(check, judgement, facts, (spelt or {}).get(judgement.fault, ""))
        if not met:
            said = "no rows were read" if unread else f"{facts.rows:,} rows"
            verdict = Verdict.SKIPPED if unread else Verdict.OK
            yield Finding(
                check=check.check, verdict=verdict, subject=check.subject, evidence=said, where=facts.name
            )


def _finding(check: DataCheck, judgement: Judgement, facts: DataFacts, spelt: str) -> Finding:
    spots = facts.spots[judgement.fault]
    return Finding(
        check=check.check,
        verdict=judgement.verdict,
        subject=judgement.subject,
        evidence=_evidence(judgement.fault, spots, facts) + (f"; {spelt}" if spelt else ""),
        fix=judgement.fix.replace("{marker}", facts.template or "the turn start"),
        where=_where(spots, facts),
    )


def _evidence(fault: Fault, spots: Spots, facts: DataFacts) -> str:
    first = spots.first[0]
    if first.line == 0:
        return first.detail
    about = "about " if fault is Fault.DUPLICATE and facts.duplicates_sampled else ""
    places = [f"{s.line}{f': {s.detail}' if s.detail else ''}" for s in spots.first]
    more = f"; and {spots.count - len(places):,} more" if spots.count > len(places) else ""
    limit = f" beyond {facts.row_limit}" if fault is Fault.OVERLONG and facts.row_limit else ""
    count = f"{about}{spots.count:,} of {max(facts.rows, spots.count):,} rows{limit}"
    return f"{count}; {facts.unit} " + f"; {facts.unit} ".join(places) + more


def _where(spots: Spots, facts: DataFacts) -> str:
    line = spots.first[0].line
    return f"{facts.name}:{line}" if line else facts.name
