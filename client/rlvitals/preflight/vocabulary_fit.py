"""T1 to T5: does the vocabulary fit the embedding, and do added tokens stand for what they say?"""

from __future__ import annotations

from collections.abc import Iterator

from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.model import GenerationFacts, ModelFacts
from rlvitals.preflight.spans import cut, runs, spans
from rlvitals.preflight.tokenizer_facts import TokenizerFacts, is_marker

_NO_ROWS = "no model, config or number of embedding rows was given"
_REMEDY = "model.resize_token_embeddings(len(tokenizer)) after the last added token and before training"


def check_fit(tokens: TokenizerFacts, model: ModelFacts | None) -> Iterator[Finding]:
    """T1: every ordinary id has a row of the embedding, and the config agrees with the weights."""
    if model is None or model.rows is None:
        yield Finding(check="T1", verdict=Verdict.SKIPPED, subject="Ids fit the model", evidence=_NO_ROWS)
        return
    beyond = [i for i in tokens.tokens if i >= model.rows and i not in tokens.added]
    if beyond:
        yield Finding(
            check="T1",
            verdict=Verdict.FATAL,
            subject="Ids beyond the embedding",
            evidence=f"{len(beyond):,} ids ({spans(beyond)}) have no row: the model has {model.rows:,} "
            f"({model.rows_from}), the largest id is {tokens.size - 1:,}",
            fix="take the tokenizer that belongs to this model (same folder or revision)",
            where="vocab_size",
        )
    heights = {model.rows, model.head_rows or model.rows, model.config_rows or model.rows}
    if len(heights) > 1:
        yield Finding(
            check="T1",
            verdict=Verdict.WARN,
            subject="Embedding, head and config differ in rows",
            evidence=f"embedding {model.rows:,}, output head {model.head_rows}, vocab_size {model.config_rows}",
            fix="set vocab_size in config.json to the rows of the weights, or resize both with "
            "model.resize_token_embeddings",
            where="config.json: vocab_size",
        )
    if not beyond and len(heights) == 1:
        fit = f"the largest id {tokens.size - 1:,} is below {model.rows:,} rows ({model.rows_from})"
        yield Finding(check="T1", verdict=Verdict.OK, subject="Ids fit the model", evidence=fit)


def check_unassigned(
    tokens: TokenizerFacts,
    model: ModelFacts | None,
    generation: GenerationFacts | None = None,
    masked: bool | None = None,
) -> Iterator[Finding]:
    """T2: rows of the embedding without a token, and whether the sampler can draw them.

    ``masked``: whether the sampler masks them, None where that is not known; then ``suppress_tokens`` decides.
    """
    subject = "Rows without a token"
    if model is None or model.rows is None:
        yield Finding(check="T2", verdict=Verdict.SKIPPED, subject=subject, evidence=_NO_ROWS)
        return
    empty = [i for i in range(model.rows) if i not in tokens.tokens]
    suppressed = generation.suppressed if generation is not None else frozenset()
    if empty and suppressed.issuperset(empty):
        masked = True
    if not empty or masked:
        what = f"{len(empty):,} ({spans(empty)}), which the sampler masks" if empty else "every row has a token"
        yield Finding(check="T2", verdict=Verdict.OK, subject=subject, evidence=what)
        return
    unknown = "" if masked is False else "; whether the sampler masks them is not known"
    yield Finding(
        check="T2",
        verdict=Verdict.WARN if masked is False else Verdict.INFO,
        subject=subject,
        evidence=f"{len(empty):,} of {model.rows:,} embedding rows have no token ({len(tokens.tokens):,} tokens): "
        f"ids {spans(empty)}. No training touched them, a drifting policy samples them, and decoding drops them "
        f"without a trace or raises in the rollout engine{unknown}",
        fix=f"mask them in the sampler: generation_config.suppress_tokens = {_ranges(empty)}",
        where="generation_config.json: suppress_tokens",
    )


def _ranges(ids: list[int]) -> str:
    parts = [f"*range({low}, {high + 1})" for low, high in runs(ids)]
    return f"[{', '.join(parts[:4])}{', …' if len(parts) > 4 else ''}]"


def check_resized(tokens: TokenizerFacts, model: ModelFacts | None) -> Iterator[Finding]:
    """T3: no added token lies beyond the embedding (a forgotten resize)."""
    subject = "Added tokens have rows"
    if model is None or model.rows is None:
        yield Finding(check="T3", verdict=Verdict.SKIPPED, subject=subject, evidence=_NO_ROWS)
        return
    beyond = [i for i in tokens.added if i >= model.rows]
    if not beyond:
        had = f"{len(tokens.added):,} added tokens, all below row {model.rows:,}"
        yield Finding(check="T3", verdict=Verdict.OK, subject=subject, evidence=had)
        return
    yield Finding(
        check="T3",
        verdict=Verdict.FATAL,
        subject="Added tokens without an embedding row",
        evidence=f"{tokens.show(beyond)} at or beyond {model.rows:,} rows ({model.rows_from})",
        fix=_REMEDY,
        where="added_tokens",
    )


def check_added_round_trip(tokens: TokenizerFacts) -> Iterator[Finding]:
    """T4: each added token encodes to itself alone and decodes to its own text."""
    taken = set(hijacked(tokens))
    ids = [i for i in tokens.added if i not in taken]
    spelt = tokens.encode_all([tokens.added[i] for i in ids]) if ids else []
    bad = [
        f"{i} {tokens.added[i]!r} encodes to {got} and decodes to {tokens.decode([i])!r}"
        for i, got in zip(ids, spelt, strict=True)
        if got != [i] or not _same(tokens.decode([i]), tokens.added[i])
    ]
    if not bad:
        passed = f"{len(ids):,} added tokens encode and decode to themselves"
        yield Finding(check="T4", verdict=Verdict.OK, subject="Added tokens round trip", evidence=passed)
        return
    yield Finding(
        check="T4",
        verdict=Verdict.WARN,
        subject="Added tokens do not round trip",
        evidence=cut(bad, "tokens"),
        fix="spell added tokens in ASCII (a byte-level decoder reads é as the byte E9) and add them with "
        "AddedToken(…, normalized=False)",
        where="added_tokens",
    )


def check_hijack(tokens: TokenizerFacts) -> Iterator[Finding]:
    """T5: no added token took the id of a byte, fragment or ordinary text of the base vocabulary."""
    taken = hijacked(tokens)
    if taken:
        yield Finding(
            check="T5",
            verdict=Verdict.FATAL,
            subject="Added tokens took ids of byte pieces",
            evidence=cut(
                [f"{tokens.added[i]!r} is id {i}, which decodes to {tokens.decode([i])!r}" for i in taken], "ids"
            )
            + ": the text vanishes with skip_special_tokens and other characters lose a byte",
            fix="remove these added tokens: spell them with more than one character, such as <|name|>",
            where="added_tokens",
        )
    words = [
        i
        for i in tokens.base
        if i in tokens.special and i not in taken and not _bracketed(tokens.added.get(i, ""))
    ]
    if words:
        yield Finding(
            check="T5",
            verdict=Verdict.WARN,
            subject="Special tokens took ids of ordinary text",
            evidence=f"{tokens.show(words)}: the text disappears wherever special tokens are skipped",
            fix="add them with special=False, or under a name that is no word: <|name|>",
            where="added_tokens",
        )
    if not taken and not words:
        clean = f"none of {len(tokens.added):,} added tokens stands on an id of ordinary text or bytes"
        yield Finding(check="T5", verdict=Verdict.OK, subject="No id was taken over", evidence=clean)


def hijacked(tokens: TokenizerFacts) -> list[int]:
    """Ids of the base vocabulary under an added token whose text is not what the id decodes to."""
    return [i for i in tokens.base if i in tokens.added and not _same(tokens.decode([i]), tokens.added[i])]


def _same(decoded: str, content: str) -> bool:
    # sentencepiece spells a space as U+2581, and some of its decoders strip the first one
    return decoded == content or decoded.strip(" ") == content.replace("▁", " ").strip(" ")


def _bracketed(text: str) -> bool:
    return is_marker(text) or (text[:1] in "<[" and text[-1:] in ">]" and len(text) > 2)
