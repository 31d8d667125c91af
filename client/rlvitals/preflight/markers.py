"""T9 to T11: are a template's markers tokens here, is none damaged, is the response's found by its ids?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.passage import Passage
from rlvitals.preflight.spans import cut
from rlvitals.preflight.template import NO_TEMPLATE, Rendering
from rlvitals.preflight.tokenizer_facts import TokenizerFacts

_TEMPLATE = "tokenizer_config.json: chat_template"
_LITERAL = re.compile(
    r"<\|[^<>|\s]{1,60}\|>|<｜[^<>｜\s]{1,60}｜>|</?s>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|CLS|SEP|PAD|MASK|UNK|BOS|EOS)\]"
    r"|<(?:bos|eos|pad|unk|start_of_turn|end_of_turn)>|</?(?:think|tool_call|tool_response)>"
)
_TAG = re.compile(r"</?(?:think|tool_call|tool_response)>")
_HOMES = {
    "<|start_header_id|>": "Llama 3",
    "<|eot_id|>": "Llama 3",
    "<|begin_of_text|>": "Llama 3",
    "<|im_start|>": "ChatML (Qwen)",
    "<|im_end|>": "ChatML (Qwen)",
    "<start_of_turn>": "Gemma",
    "<end_of_turn>": "Gemma",
    "[INST]": "Mistral or Llama 2",
    "[/INST]": "Mistral or Llama 2",
    "<|im_sep|>": "Phi-4",
    "<｜User｜>": "DeepSeek",
    "<｜Assistant｜>": "DeepSeek",
}


def first_control(tokens: TokenizerFacts, ids: Sequence[int]) -> int | None:
    """The first special id, where there is none the first added one that is spelt like a marker."""
    control = tokens.control
    found = [i for i in ids if i in tokens.special] or [i for i in ids if i in control]
    return found[0] if found else None


def unknown_literals(tokens: TokenizerFacts, text: str) -> dict[str, list[int]]:
    """What is spelt like a marker in ``text`` and is no single added or special token, with its ids."""
    known = set(tokens.added.values()) | {tokens.tokens[i] for i in tokens.special if i in tokens.tokens}
    spelt = [literal for literal in dict.fromkeys(_LITERAL.findall(text)) if literal not in known]
    return dict(zip(spelt, tokens.encode_all(spelt), strict=True)) if spelt else {}


def check_specials(tokens: TokenizerFacts, rendering: Rendering | None) -> Iterator[Finding]:
    """T9: every marker that the template writes is one special or added token of this tokenizer."""
    subject = "The template's markers are tokens"
    if rendering is None:
        yield Finding(check="T9", verdict=Verdict.SKIPPED, subject=subject, evidence=NO_TEMPLATE)
        return
    text = rendering.asked_again + rendering.answered + rendering.prompt
    unknown = unknown_literals(tokens, text)
    plain = {t: ids for t, ids in unknown.items() if _TAG.fullmatch(t) or (t[0] == "[" and _spells_bytes(tokens))}
    foreign = {t: ids for t, ids in unknown.items() if t not in plain}
    if foreign:
        yield _foreign(tokens, foreign)
    if plain:
        yield Finding(
            check="T9",
            verdict=Verdict.INFO,
            subject="Tags that are ordinary text",
            evidence=cut([f"{t!r} is {len(ids)} ids {ids}" for t, ids in plain.items()], "tags")
            + ": look for them by text, not by one id",
        )
    if not unknown:
        whole = dict.fromkeys(_LITERAL.findall(text))
        yield Finding(
            check="T9", verdict=Verdict.OK, subject=subject, evidence=cut([repr(t) for t in whole], "markers")
        )


def _foreign(tokens: TokenizerFacts, foreign: dict[str, list[int]]) -> Finding:
    homes = " and ".join(dict.fromkeys(_HOMES[t] for t in foreign if t in _HOMES))
    own = [text for text in tokens.added.values() if text in _HOMES]
    return Finding(
        check="T9",
        verdict=Verdict.FATAL,
        subject=f"The chat template is {homes}'s, not this tokenizer's" if homes else "Markers that are no tokens",
        evidence=cut([f"{t!r} is {len(ids)} ordinary ids {ids}" for t, ids in foreign.items()], "markers")
        + (f"; this tokenizer has {', '.join(own)}" if own else ""),
        fix="set chat_template in tokenizer_config.json (tokenizer.chat_template) to the one that ships with this "
        "tokenizer, or add these markers as special tokens and resize the embedding",
        where=_TEMPLATE,
    )


def _spells_bytes(tokens: TokenizerFacts) -> bool:
    # Llama 2 and Mistral v1, which have <0xNN> pieces, were trained with [INST] as ordinary text
    return "<0x0A>" in tokens.tokens.values()


def near_miss_pattern(tokens: TokenizerFacts) -> re.Pattern[str] | None:
    """Damaged forms of this tokenizer's markers: other case, blanks inside, a lost bar or bracket."""
    names: dict[str, None] = {}
    for token_id in tokens.control:
        text = tokens.added.get(token_id, "")
        name = text.strip("<>|｜[]/ ")
        if text[:1] == "<" and len(name) > 3 and not name[-1].isdigit():
            names[name] = None
    if not names:
        return None
    inner = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    return re.compile(
        rf"</?\s*[|｜]?\s*(?:{inner})\s*[|｜]?\s*>|<[|｜](?:{inner})[|｜](?!>)|(?<!<)[|｜](?:{inner})[|｜]>", re.I
    )


def near_misses(tokens: TokenizerFacts, pattern: re.Pattern[str], text: str) -> list[str]:
    known = set(tokens.added.values())
    return [form for form in dict.fromkeys(pattern.findall(text)) if form not in known]


def check_near_misses(
    tokens: TokenizerFacts, rendering: Rendering | None, passages: Iterable[Passage]
) -> Iterator[Finding]:
    """T10: no damaged marker (``<|im_end |>``, ``<im_end>``) in the template or in the sampled texts."""
    pattern, looked = near_miss_pattern(tokens), 0
    seen: dict[str, str] = {}
    texts = [Passage(text=rendering.source, where=_TEMPLATE)] if rendering is not None else []
    for passage in (*texts, *passages) if pattern is not None else ():
        looked += 1
        for form in near_misses(tokens, pattern, passage.text) if pattern is not None else ():
            seen.setdefault(form, passage.where)
    if not seen:
        verdict = Verdict.OK if looked else Verdict.SKIPPED
        what = f"none in {looked:,} texts" if looked else "no template and no data, or no marker to damage"
        yield Finding(check="T10", verdict=verdict, subject="No damaged markers", evidence=what)
        return
    ids = dict(zip(seen, tokens.encode_all(list(seen)), strict=True))
    yield Finding(
        check="T10",
        verdict=Verdict.WARN,
        subject="Damaged markers",
        evidence=cut(
            [f"{form!r} at {where} is {len(ids[form])} ordinary ids" for form, where in seen.items()], "forms"
        )
        + ": they neither start nor stop a turn",
        fix="write the marker exactly as the tokenizer has it",
        where=next(iter(seen.values())),
    )


def occurrences(ids: Sequence[int], marker: Sequence[int]) -> int:
    """How often ``marker`` stands in ``ids`` as a contiguous slice."""
    size, want = len(marker), list(marker)
    return sum(list(ids[i : i + size]) == want for i in range(len(ids) - size + 1)) if size else 0


def check_response_marker(
    tokens: TokenizerFacts, rendering: Rendering | None, given: str | None = None
) -> Iterator[Finding]:
    """T11: the ids of the response template stand once in each assistant turn of a rendered conversation.

    ``given`` is the marker that a collator was told to look for; without it the template's own is tried.
    """
    subject = "The response marker is found by its ids"
    if rendering is None:
        yield Finding(check="T11", verdict=Verdict.SKIPPED, subject=subject, evidence=NO_TEMPLATE)
        return
    marker = given if given is not None else rendering.marker
    if given is None and unknown_literals(tokens, marker):
        reason = "none was given, and the template's own has markers that are no tokens (T9)"
        yield Finding(check="T11", verdict=Verdict.SKIPPED, subject=subject, evidence=reason)
        return
    alone = tokens.encode(marker)
    turns, text = (2, rendering.dialogue) if rendering.dialogue else (1, rendering.answered)
    turns += marker in rendering.tail  # a template that opens the next answer whether asked to or not
    found = occurrences(tokens.encode(text), alone)
    told = f"{marker!r} is {tokens.show(alone)}"
    if found == turns:
        yield Finding(check="T11", verdict=Verdict.OK, subject=subject, evidence=f"{told}; {turns} times")
        return
    at = text.find(marker)
    context = tokens.encode(text[: at + len(marker)])[-len(alone) - 2 :] if at >= 0 else []
    yield Finding(
        check="T11",
        verdict=Verdict.FATAL if given is not None else Verdict.INFO,
        subject="The response marker is not found by its ids",
        evidence=f"{told} alone, and stands {found} times where {turns} assistant turns begin"
        + (f"; in context the text is {tokens.show(context)}" if context else "; its text does not occur"),
        fix="give the collator the ids as they are in context, or use a marker of special tokens "
        f"({rendering.marker!r})",
        where="response_template",
    )
