"""L1 to L3: do the answers fit the limit, the prompts theirs, and both together the context?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rlvitals.preflight.data_lengths import LengthFacts
from rlvitals.preflight.finding import Finding, Verdict

COVERED = 0.95
CUT_WARN, CUT_FATAL = 0.05, 0.5
"""Shares of cut answers, as the truncation rule of a running job judges them."""
PROMPTS_CUT_WARN = 0.01
STEP = 64
LABEL_TOKENS = 16
FEW = 30
"""Fewer texts say little about the 95th percentile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit in tokens, with the key that sets it and the file or command line that it stands in."""

    tokens: int
    key: str
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetFacts:
    """Lengths of prompts and answers with the limits they meet. ``labels`` if the column may hold mere labels."""

    prompts: LengthFacts | None = None
    answers: LengthFacts | None = None
    completion: Limit | None = None
    prompt: Limit | None = None
    context: Limit | None = None
    answer_key: str = ""
    labels: bool = False


def suggested_cap(lengths: LengthFacts, covered: float = COVERED) -> int:
    """The limit, rounded up to a multiple of 64, that ``covered`` of the texts do not exceed."""
    return max(STEP, -(-lengths.tokens(covered) // STEP) * STEP)


def judge_budget(facts: BudgetFacts) -> Iterator[Finding]:
    yield _answers(facts)
    yield _prompts(facts)
    yield _context(facts)


def _answers(facts: BudgetFacts) -> Finding:
    subject, lengths, limit = "Answers fit the completion limit", facts.answers, facts.completion
    if lengths is None or not lengths.total:
        return _skipped(
            "L1", subject, "no answers in the data: give a file of answers (--answer-key names its column)"
        )
    said = _quantiles(lengths)
    if facts.labels and lengths.tokens(0.5) < LABEL_TOKENS:
        return _skipped("L1", subject, f"column {facts.answer_key!r} holds labels, not answers: {said}")
    if limit is None:
        return _info(
            "L1", "Answer lengths", f"{said}; no limit was given", f"set the limit to {suggested_cap(lengths)}"
        )
    cut, cap = lengths.share_above(limit.tokens), suggested_cap(lengths)
    evidence = f"{said}; {limit.key} = {limit.tokens:,} cuts {_percent(cut)} of them"
    if cut <= CUT_WARN:
        return Finding(check="L1", verdict=Verdict.OK, subject=subject, evidence=evidence, where=limit.where)
    median = lengths.tokens(0.5)
    return Finding(
        check="L1",
        verdict=Verdict.FATAL if cut > CUT_FATAL else Verdict.WARN,
        subject=f"{limit.key} = {limit.tokens:,} is below the median answer ({median:,} tokens)"
        if median > limit.tokens
        else f"{limit.key} = {limit.tokens:,} cuts {_percent(cut)} of the answers",
        evidence=evidence,
        fix=f"set {limit.key} to {cap:,}, which covers 95 %; an answer that is cut earns no reward and never ends",
        where=limit.where,
    )


def _prompts(facts: BudgetFacts) -> Finding:
    subject, lengths, limit = "Prompts fit the prompt limit", facts.prompts, facts.prompt
    if lengths is None or not lengths.total:
        return _skipped("L2", subject, "no prompts were read")
    if limit is None:
        return _skipped("L2", subject, f"no prompt limit is set; {_quantiles(lengths)}")
    cut = lengths.share_above(limit.tokens)
    evidence = f"{_quantiles(lengths)}; {limit.key} = {limit.tokens:,} is exceeded by {_percent(cut)}"
    if cut <= PROMPTS_CUT_WARN:
        return Finding(check="L2", verdict=Verdict.OK, subject=subject, evidence=evidence, where=limit.where)
    return Finding(
        check="L2",
        verdict=Verdict.WARN,
        subject=f"{limit.key} = {limit.tokens:,} cuts or drops {_percent(cut)} of the prompts",
        evidence=evidence,
        fix=f"set {limit.key} to {suggested_cap(lengths, 0.99):,}, which covers 99 %, or leave long prompts out "
        "yourself: a cut from the left takes the turn start and the system prompt",
        where=limit.where,
    )


def _context(facts: BudgetFacts) -> Finding:
    subject, context, completion = "Prompt and answer fit the context", facts.context, facts.completion
    if context is None or completion is None:
        return _skipped("L3", subject, "the context length or the completion limit is not known")
    prompts = facts.prompts
    longest = prompts.tokens(1.0) if prompts is not None and prompts.total else 0
    if facts.prompt is not None:
        longest = min(longest, facts.prompt.tokens) if longest else facts.prompt.tokens
    need = longest + completion.tokens
    told = f"prompts to {longest:,} + {completion.key} {completion.tokens:,} = {need:,} tokens"
    told += f"; {context.key} = {context.tokens:,}"
    if need <= context.tokens:
        return Finding(check="L3", verdict=Verdict.OK, subject=subject, evidence=told, where=context.where)
    alone = completion.tokens >= context.tokens
    return Finding(
        check="L3",
        verdict=Verdict.FATAL if alone else Verdict.WARN,
        subject="Prompt and answer together exceed the context",
        evidence=told + ": the context ends answers before the limit does, and no truncation metric sees it",
        fix=f"lower {completion.key} to {max(1, context.tokens - longest):,} or raise {context.key}",
        where=completion.where or context.where,
    )


def _quantiles(lengths: LengthFacts) -> str:
    how = (
        f"estimated at {lengths.bytes_per_token:.3g} UTF-8 bytes a token (give --tokenizer to count)"
        if not lengths.counted
        else "counted"
        if lengths.counted >= lengths.total
        else f"from {lengths.counted:,} counted, {lengths.bytes_per_token:.3g} bytes a token"
    )
    few = f", only {lengths.total} texts" if lengths.total < FEW else ""
    at = ", ".join(f"{name} {lengths.tokens(q):,}" for name, q in (("median", 0.5), ("p95", 0.95), ("max", 1.0)))
    return f"{at} tokens {how}{few}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"


def _skipped(check: str, subject: str, why: str) -> Finding:
    return Finding(check=check, verdict=Verdict.SKIPPED, subject=subject, evidence=why)


def _info(check: str, subject: str, evidence: str, fix: str) -> Finding:
    return Finding(check=check, verdict=Verdict.INFO, subject=subject, evidence=evidence, fix=fix)
