"""T20 and T21: is it the same tokenizer everywhere, and does it pad on the side that generation needs?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlvitals.preflight.boundaries import SAMPLES
from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.model import ModelFacts
from rlvitals.preflight.tokenizer_facts import TokenizerFacts

_SPELT_ALIKE = {"transformers", "tokenizers"}
_FIX = "load the {role}'s tokenizer from the same folder and revision as the actor's"


def check_same(tokens: TokenizerFacts, others: Mapping[str, TokenizerFacts]) -> Iterator[Finding]:
    """T20: actor, reference, reward and rollout engine share vocabulary, added tokens and chat template."""
    if not others:
        reason = "no tokenizer of a reference, reward or rollout engine was given"
        yield Finding(check="T20", verdict=Verdict.SKIPPED, subject="Same tokenizer everywhere", evidence=reason)
        return
    for role, other in others.items():
        alike = {tokens.library, other.library} <= _SPELT_ALIKE or tokens.library == other.library
        yield _by_digest(role, tokens, other) if alike else _by_ids(role, tokens, other)


def _by_digest(role: str, tokens: TokenizerFacts, other: TokenizerFacts) -> Finding:
    own, theirs = tokens.digests(), other.digests()
    if "tokenizers" in (tokens.library, other.library):  # it has no template
        own.pop("chat template")
    parts = [part for part in own if own[part] != theirs[part]]
    shown = ", ".join(f"{part} {own[part][:12]} and {theirs[part][:12]}" for part in parts)
    return Finding(
        check="T20",
        verdict=Verdict.FATAL if parts else Verdict.OK,
        subject=f"{role}: another tokenizer" if parts else f"{role}: the same tokenizer",
        evidence=f"SHA-256 of {shown} differ{_first(tokens, other)}"
        if parts
        else "SHA-256 of " + ", ".join(f"{part} {digest[:12]}" for part, digest in own.items()),
        fix=_FIX.format(role=role) if parts else "",
        where=other.name if parts else "",
    )


def _by_ids(role: str, tokens: TokenizerFacts, other: TokenizerFacts) -> Finding:
    """Libraries that spell vocabularies differently: sampled texts must have the same ids."""
    for text in SAMPLES:
        here, there = tokens.encode(text), other.encode(text)
        if here != there:
            return Finding(
                check="T20",
                verdict=Verdict.FATAL,
                subject=f"{role}: another tokenizer",
                evidence=f"{text!a} is {here} here and {there} in {other.library}",
                fix=_FIX.format(role=role),
                where=other.name,
            )
    return Finding(
        check="T20",
        verdict=Verdict.INFO,
        subject=f"{role}: the same ids",
        evidence=f"{other.library} spells its vocabulary in its own way: {len(SAMPLES)} texts were compared",
    )


def _first(tokens: TokenizerFacts, other: TokenizerFacts) -> str:
    for token_id in sorted({*tokens.tokens, *other.tokens}):
        mine, theirs = tokens.tokens.get(token_id), other.tokens.get(token_id)
        if mine != theirs:
            return f"; id {token_id} is {mine!r} here and {theirs!r} there"
    return ""


def check_padding_side(
    tokens: TokenizerFacts, model: ModelFacts | None, *, own_padding: bool = False
) -> Iterator[Finding]:
    """T21: a decoder-only model generates from prompts padded on the left.

    ``own_padding``: the trainer pads prompts itself, so that the tokenizer's side does not matter.
    """
    encoder_decoder = model is not None and model.encoder_decoder
    if tokens.padding_side is None or encoder_decoder:
        reason = "an encoder-decoder model" if encoder_decoder else "this kind of tokenizer does not pad"
        yield Finding(check="T21", verdict=Verdict.SKIPPED, subject="Padding side", evidence=reason)
        return
    right = tokens.padding_side != "left"
    verdict = Verdict.OK if not right else Verdict.INFO if own_padding else Verdict.WARN
    yield Finding(
        check="T21",
        verdict=verdict,
        subject="Pads on the right" if right else "Pads on the left",
        evidence=f"tokenizer.padding_side is {tokens.padding_side!r}"
        + ("; the trainer pads prompts on the left itself" if own_padding and right else "")
        + ("; batched generation then continues after padding" if verdict is Verdict.WARN else ""),
        fix="tokenizer.padding_side = 'left'" if right else "",
        where="tokenizer_config.json: padding_side" if right else "",
    )
