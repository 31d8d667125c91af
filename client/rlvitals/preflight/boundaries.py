"""T12 to T14 and T19: do texts that join encode as they do apart, and does decoding give them back?"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from rlvitals.guard import outcome
from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.passage import Passage
from rlvitals.preflight.spans import cut
from rlvitals.preflight.template import NO_TEMPLATE, THOUGHT, Rendering
from rlvitals.preflight.tokenizer_facts import TokenizerFacts

OPENINGS = ("Hi", "\nHi", "\n\nHi", " Hi", "42", "<think>", "你好")
"""How completions begin."""
OPENING_CHARS = 32
"""Of each sampled completion."""
SAMPLES = (
    "Hello, world!",
    " a space before",
    "e\u0301",
    "\u1112\u1161\u11ab",
    "a\u200db",
    "x , y .",
    "1\r\n2",
    "价格£5",
    "🎣",
)
"""Texts that normalisers, clean-up and byte pieces treat in their own ways."""


def check_prefix(tokens: TokenizerFacts, rendering: Rendering | None) -> Iterator[Finding]:
    """T12: the prompt's ids are the first ids of prompt and answer together."""
    subject = "The prompt is a prefix of prompt and answer"
    if rendering is None:
        yield Finding(check="T12", verdict=Verdict.SKIPPED, subject=subject, evidence=NO_TEMPLATE)
        return
    for prompt, whole in rendering.pairs:
        before, after = tokens.encode(prompt), tokens.encode(whole)
        at = first_difference(before, after)
        if at is not None:
            was, becomes = (tokens.show(ids[at : at + 4]) for ids in (before, after))
            yield Finding(
                check="T12",
                verdict=Verdict.WARN,
                subject="The template rewrites the prompt when an answer follows",
                evidence=f"from position {at} on: {was} becomes {becomes or 'nothing'}",
                fix="train on the sampled ids (prompt ids + completion ids), not on the pair rendered anew",
                where="tokenizer_config.json: chat_template",
            )
            return
    if rendering.thought and THOUGHT not in rendering.thought:
        yield Finding(
            check="T12",
            verdict=Verdict.INFO,
            subject="The template drops the thinking of earlier turns",
            evidence="in [user, assistant, user] the text between <think> and </think> is gone: a later turn is "
            "trained without what it was sampled after",
            fix="in multi-turn training append new turns to the sampled ids; never render the conversation again",
            where="tokenizer_config.json: chat_template",
        )
    kept = f"{len(tokens.encode(rendering.prompt))} prompt ids, all kept; in a second turn too"
    yield Finding(check="T12", verdict=Verdict.OK, subject=subject, evidence=kept)


def first_difference(prefix: Sequence[int], whole: Sequence[int]) -> int | None:
    """The first place where ``whole`` does not go on as ``prefix``; None where it begins with all of it."""
    for at, token_id in enumerate(prefix):
        if at >= len(whole) or whole[at] != token_id:
            return at
    return None


def check_merge(
    tokens: TokenizerFacts, rendering: Rendering | None, completions: Iterable[str] = ()
) -> Iterator[Finding]:
    """T13: prompt and completion encoded apart and together agree, for common openings and sampled completions."""
    subject = "Prompt and completion do not merge"
    if rendering is None:
        yield Finding(check="T13", verdict=Verdict.SKIPPED, subject=subject, evidence=NO_TEMPLATE)
        return
    openings = dict.fromkeys((*OPENINGS, *(text[:OPENING_CHARS] for text in completions)))
    merged = [told for opening in openings if (told := _merge(tokens, rendering.prompt, opening))]
    if not merged:
        tried = f"apart and together agree for {cut([repr(one) for one in openings], 'openings')}"
        yield Finding(check="T13", verdict=Verdict.OK, subject=subject, evidence=tried)
        return
    yield Finding(
        check="T13",
        verdict=Verdict.INFO,
        subject="Prompt and completion merge when encoded together",
        evidence=cut(merged, "openings"),
        fix="keep the sampled ids from rollout to loss (token in, token out); encoding the text again gives other "
        "log-probs",
    )


def _merge(tokens: TokenizerFacts, prompt: str, opening: str) -> str:
    before, begun = tokens.encode(prompt), outcome(tokens.encode, opening)[0]
    if begun is None:  # a lone surrogate
        return ""
    apart, together = before + begun, tokens.encode(prompt + opening)
    at = first_difference(apart, together)
    if at is None and len(apart) == len(together):
        return ""
    at = min(len(apart), len(together)) if at is None else at
    return f"{opening!r}: {apart[at : at + 4]} apart, {together[at : at + 4]} together"


def check_bos(
    tokens: TokenizerFacts, rendering: Rendering | None, prompts: Iterable[Passage] = ()
) -> Iterator[Finding]:
    """T14: encoding a rendered prompt with the tokenizer's default adds no second BOS.

    Many released tokenizers add one that their template writes too, and trainers that render know it. Prompts
    that were rendered already are encoded by the default, and get two.
    """
    if rendering is None:
        yield Finding(check="T14", verdict=Verdict.SKIPPED, subject="One BOS", evidence=NO_TEMPLATE)
        return
    ids = tokens.encode_whole(rendering.prompt)
    if tokens.bos is None or ids[:2] != [tokens.bos, tokens.bos]:
        begins = f"a rendered prompt begins with {tokens.show(ids[:2])}"
        yield Finding(check="T14", verdict=Verdict.OK, subject="One BOS at most", evidence=begins)
        return
    told = f"tokenizer(rendered prompt) begins with {ids[:3]}: template and tokenizer both add "
    begun = [p.where for p in prompts if p.text.startswith(tokens.tokens[tokens.bos])]
    yield Finding(
        check="T14",
        verdict=Verdict.WARN if begun else Verdict.INFO,
        subject="Two BOS" if begun else "Two BOS where rendered text is encoded by the default",
        evidence=f"{told}{tokens.show([tokens.bos])}"
        + (f"; {len(begun):,} prompts of the data begin with it already" if begun else ""),
        fix="tokenizer(text, add_special_tokens=False) for rendered text, or apply_chat_template(tokenize=True)",
        where=begun[0] if begun else "tokenizer_config.json: chat_template and add_bos_token",
    )


def check_text_round_trip(tokens: TokenizerFacts, passages: Iterable[Passage] = ()) -> Iterator[Finding]:
    """T19: what is encoded decodes to the same text, on texts of our own and on sampled ones."""
    own = [Passage(text=text, where="own sample") for text in SAMPLES]
    changed, looked = [], 0
    for passage in (*own, *passages):
        ids, _ = outcome(tokens.encode, passage.text)
        if ids is None:  # a lone surrogate is D8's to tell
            continue
        looked += 1
        back = tokens.decode_default(ids)
        if back != passage.text:
            changed.append(
                f"{_around(passage.text, back)} ({passage.where}): {_reason(tokens, passage.text, back, ids)}"
            )
    if not changed:
        yield Finding(check="T19", verdict=Verdict.OK, subject="Text round trips", evidence=f"{looked:,} texts")
        return
    yield Finding(
        check="T19",
        verdict=Verdict.INFO,
        subject="Decoding does not give back every text",
        evidence=f"{len(changed):,} of {looked:,} texts: {cut(changed, 'texts')}",
        fix="compare and reward on ids or on text normalised the same way; decode with "
        "clean_up_tokenization_spaces=False",
    )


def _reason(tokens: TokenizerFacts, text: str, back: str, ids: Sequence[int]) -> str:
    for form in ("NFC", "NFKC"):
        if back == unicodedata.normalize(form, text):
            return f"normalised to {form}"
    if tokens.decode(ids) == text:
        return "clean_up_tokenization_spaces"
    if back.strip(" ") == text.strip(" "):
        return "spaces at the ends"
    return "unknown or other characters"


def _around(text: str, back: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(text, back, strict=False)) if a != b), min(len(text), len(back)))
    start = max(0, at - 8)
    return f"{text[start : at + 8]!a} becomes {back[start : at + 8]!a}"
