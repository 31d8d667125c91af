"""The stage of T1 to T21: reads tokenizer, model, generation config and template, then judges what was read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvitals.guard import outcome
from rlvitals.preflight.boundaries import check_bos, check_merge, check_prefix, check_text_round_trip
from rlvitals.preflight.data_sample import read_passages
from rlvitals.preflight.file_kind import read_regular
from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.identity import check_padding_side, check_same
from rlvitals.preflight.markers import check_near_misses, check_response_marker, check_specials
from rlvitals.preflight.model import GenerationFacts, ModelFacts, read_generation, read_model
from rlvitals.preflight.passage import Passage
from rlvitals.preflight.prompts import check_injection, check_prompts, tell_refusal
from rlvitals.preflight.source import TOKENIZER_FILES, folder_with, named_folder, tokenizer_of
from rlvitals.preflight.stops import Stops, check_eos, check_pad, check_turn_end
from rlvitals.preflight.subject import Subject
from rlvitals.preflight.template import Rendering, render
from rlvitals.preflight.tokenizer import read_tokenizer
from rlvitals.preflight.tokenizer_facts import TokenizerFacts
from rlvitals.preflight.trainer_config import pads_itself
from rlvitals.preflight.vocabulary_fit import (
    check_added_round_trip,
    check_fit,
    check_hijack,
    check_resized,
    check_unassigned,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizationFacts:
    """All that T1 to T21 look at. ``rendering`` is None without a chat template or where it cannot be rendered;
    ``template_error`` says why, also where it could be with an absent token left empty."""

    tokens: TokenizerFacts
    model: ModelFacts | None = None
    generation: GenerationFacts | None = None
    rendering: Rendering | None = None
    template_error: str = ""
    others: dict[str, TokenizerFacts] = field(default_factory=dict)
    passages: Sequence[Passage] = ()
    stop_ids: tuple[int, ...] = ()
    sampler_masks: bool | None = None
    response_template: str | None = None
    census: Sequence[Finding] = ()
    own_padding: bool = False


def judge(facts: TokenizationFacts) -> Iterator[Finding]:
    """T1 to T21 in order, on facts alone."""
    tokens, model, rendering, passages = facts.tokens, facts.model, facts.rendering, facts.passages
    stops = Stops.of(tokens, model, facts.generation, facts.stop_ids)
    yield from check_fit(tokens, model)
    yield from check_unassigned(tokens, model, facts.generation, facts.sampler_masks)
    yield from facts.census
    yield from check_resized(tokens, model)
    yield from check_added_round_trip(tokens)
    yield from check_hijack(tokens)
    yield from check_turn_end(tokens, rendering, stops)
    yield from check_eos(tokens, model, stops)
    yield from check_pad(tokens, rendering, model, stops, own_padding=facts.own_padding)
    yield from check_specials(tokens, rendering)
    yield from check_near_misses(tokens, rendering, passages)
    yield from check_response_marker(tokens, rendering, facts.response_template)
    yield from check_prefix(tokens, rendering)
    yield from check_merge(tokens, rendering, [p.text for p in passages if p.role == "assistant"])
    prompts = [p for p in passages if p.role == "prompt"]
    yield from check_bos(tokens, rendering, prompts)
    if facts.template_error:
        yield tell_refusal(facts.template_error)
    else:
        yield from check_prompts(tokens, rendering, stops, prompts)
    yield from check_injection(tokens, passages)
    yield from check_text_round_trip(tokens, passages)
    yield from check_same(tokens, facts.others)
    yield from check_padding_side(tokens, model, own_padding=facts.own_padding)


def check_tokenization(subject: Subject) -> Iterator[Finding]:
    """Reads what was given and judges it. What can't be read is a finding; without a tokenizer that is all."""
    source = named_folder(subject.model)
    given = tokenizer_of(subject)
    if given is None:
        yield _no_tokenizer(source)
        return
    tokens, error = outcome(read_tokenizer, given)
    if tokens is None:
        yield _unreadable("T1", "The tokenizer cannot be read", given, error)
        return
    parts: dict[str, Any] = {}
    yield from _read(parts, "model", read_model, source, "T1")
    sampling = subject.generation_config
    sampling = sampling if sampling is not None else folder_with(source, "generation_config.json")
    yield from _read(parts, "generation", read_generation, sampling, "T7")
    _read_template(parts, tokens, subject.chat_template)
    others: dict[str, TokenizerFacts] = {}
    for role, other in subject.other_tokenizers.items():
        yield from _read(others, role, read_tokenizer, other, "T20")
    yield from judge(
        TokenizationFacts(
            tokens=tokens,
            others=others,
            passages=read_passages(subject.data),
            stop_ids=tuple(subject.stop_ids),
            sampler_masks=subject.sampler_masks,
            response_template=subject.response_template,
            census=tuple(_tell_census(tokens, parts.get("model"))),
            own_padding=pads_itself(subject.trainer_config),
            **parts,
        )
    )


def _read(parts: dict[str, Any], name: str, read: Any, given: Any, check: str) -> Iterator[Finding]:
    if given is None:
        return
    value, error = outcome(read, given)
    if value is None:
        yield _unreadable(check, f"The {name} cannot be read", given, error)
    else:
        parts[name] = value


def _read_template(parts: dict[str, Any], tokens: TokenizerFacts, given: str | None) -> None:
    template = _as_text(str(given)) if given is not None else tokens.chat_template
    if template is None:
        return
    rendering, error = render(tokens, template)
    parts.update(rendering=rendering, template_error=error)


def _as_text(template: str) -> str:
    """The template itself, or the file that holds it."""
    text = None
    if "\n" not in template and "{" not in template:
        text, _ = outcome(read_regular, Path(template))
    return template if text is None else text


def _no_tokenizer(model: Any) -> Finding:
    """Nothing to judge; but a name or a folder without any tokenizer was meant to hold one."""
    if not isinstance(model, str | Path) or os.path.isfile(model):
        return _skipped("T1", "Tokenizer", "no tokenizer was given")
    there = os.path.isdir(model)
    return Finding(
        check="T1",
        verdict=Verdict.WARN if folder_with(model, "config.json") is not None else Verdict.FATAL,
        subject="No tokenizer with the model" if there else "No such model here",
        evidence=f"the folder holds none of {', '.join(TOKENIZER_FILES)}"
        if there
        else "it is no folder and not in the hub's cache; nothing is downloaded",
        fix="give the model's folder, or the tokenizer's with --tokenizer",
        where=str(model),
    )


def _tell_census(tokens: TokenizerFacts, model: ModelFacts | None) -> Iterator[Finding]:
    from rlvitals.preflight.census import read_table, tell_census

    table, error = outcome(read_table, tokens, model.rows if model is not None else None)
    if table is None:
        yield _skipped("T2", "Ids by class", error)
    else:
        yield from tell_census(table)


def _skipped(check: str, subject: str, reason: str) -> Finding:
    return Finding(check=check, verdict=Verdict.SKIPPED, subject=subject, evidence=reason)


def _unreadable(check: str, subject: str, given: Any, error: str) -> Finding:
    named = str(given) if isinstance(given, str | Path) else type(given).__name__
    return Finding(
        check=check,
        verdict=Verdict.FATAL,
        subject=subject,
        evidence=error,
        fix="give the folder of the model, or the object itself",
        where=named,
    )
