"""T6 to T8: does a turn's end stop the sampler, do all configs name the same ends, is padding apart?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.markers import first_control, unknown_literals
from rlvitals.preflight.model import GenerationFacts, ModelFacts
from rlvitals.preflight.template import NO_TEMPLATE, Rendering
from rlvitals.preflight.tokenizer_facts import TokenizerFacts

_BY_POSITION = "; this trainer masks behind the first stop, by position, and loses none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stops:
    """EOS ids by who names them; None where that one names none. ``extra`` are the sampler's own stop ids,
    ``sampler_pad`` is what generation fills finished rows with."""

    generation: tuple[int, ...] | None = None
    config: tuple[int, ...] | None = None
    tokenizer: int | None = None
    extra: tuple[int, ...] = ()
    sampler_pad: int | None = None

    @classmethod
    def of(
        cls,
        tokens: TokenizerFacts,
        model: ModelFacts | None,
        generation: GenerationFacts | None,
        extra: tuple[int, ...] = (),
    ) -> Stops:
        return cls(
            generation=generation.eos if generation is not None else None,
            config=model.eos if model is not None else None,
            tokenizer=tokens.eos,
            extra=extra,
            sampler_pad=next((one.pad for one in (generation, model) if one and one.pad is not None), None),
        )

    @property
    def source(self) -> str:
        """Who decides where generation ends."""
        if self.generation is not None:
            return "generation config"
        return "model config" if self.config is not None else "tokenizer"

    @property
    def ids(self) -> tuple[int, ...]:
        """Where generation ends: the generation config, without it the model config, without it the tokenizer."""
        own = (self.tokenizer,) if self.tokenizer is not None else ()
        first = next((ids for ids in (self.generation, self.config) if ids is not None), own)
        return tuple(dict.fromkeys((*first, *self.extra)))


def turn_end(tokens: TokenizerFacts, rendering: Rendering) -> int | None:
    """The first special id after an assistant's content; None where the template writes none."""
    return first_control(tokens, tokens.encode(rendering.tail))


def check_turn_end(tokens: TokenizerFacts, rendering: Rendering | None, stops: Stops) -> Iterator[Finding]:
    """T6: the id with which the template ends an assistant's turn stops generation."""
    if rendering is None:
        yield Finding(
            check="T6", verdict=Verdict.SKIPPED, subject="A turn's end stops the sampler", evidence=NO_TEMPLATE
        )
        return
    end = turn_end(tokens, rendering)
    told = f"stop ids ({stops.source}): {tokens.show(stops.ids) or 'none'}"
    if end is None:
        yield _endless(tokens, rendering, told)
    elif end in stops.ids:
        fact = f"turns end with {tokens.show([end])}; {told}"
        yield Finding(check="T6", verdict=Verdict.OK, subject="A turn's end stops the sampler", evidence=fact)
    else:
        yield Finding(
            check="T6",
            verdict=Verdict.FATAL,
            subject="A turn's end does not stop the sampler",
            evidence=f"the template ends a turn with {tokens.show([end])}, not among the {told}: "
            "every completion runs on to the length limit",
            fix=f"model.generation_config.eos_token_id = {sorted({*stops.ids, end})}"
            + (f" and tokenizer.eos_token = {tokens.tokens[end]!r}" if tokens.eos != end else ""),
            where="generation_config.json: eos_token_id",
        )


def _endless(tokens: TokenizerFacts, rendering: Rendering, told: str) -> Finding:
    foreign = unknown_literals(tokens, rendering.tail)
    if foreign:
        text, ids = next(iter(foreign.items()))
        return Finding(
            check="T6",
            verdict=Verdict.FATAL,
            subject="The template's turn end is no token",
            evidence=f"{text!r} ends a turn and is {len(ids)} ordinary ids here ({tokens.show(ids)}): it "
            f"can never stop generation; {told}",
            fix="use the chat_template that ships with this tokenizer",
            where="tokenizer_config.json: chat_template",
        )
    return Finding(
        check="T6",
        verdict=Verdict.WARN,
        subject="The template ends a turn with no special token",
        evidence=f"after the content comes {rendering.tail!r}: nothing teaches the model to stop; {told}",
        fix="write eos_token after an assistant's content in the chat_template",
        where="tokenizer_config.json: chat_template",
    )


def check_eos(tokens: TokenizerFacts, model: ModelFacts | None, stops: Stops) -> Iterator[Finding]:
    """T7: there is an EOS, each is a special token with a row, and all who name one agree."""
    if not stops.ids:
        yield Finding(
            check="T7",
            verdict=Verdict.FATAL,
            subject="No EOS",
            evidence="neither generation config, model config nor tokenizer names an eos_token_id",
            fix="model.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids('<the turn end>')",
            where="generation_config.json: eos_token_id",
        )
        return
    found = [*_unusable(tokens, model, stops), *_disagreeing(tokens, stops)]
    yield from found
    if not found:
        agreed = f"{tokens.show(stops.ids)} ({stops.source}), special and below the embedding's rows"
        yield Finding(check="T7", verdict=Verdict.OK, subject="EOS exists and all agree", evidence=agreed)


def _unusable(tokens: TokenizerFacts, model: ModelFacts | None, stops: Stops) -> Iterator[Finding]:
    rows = model.rows if model is not None and model.rows is not None else tokens.size
    missing = [i for i in stops.ids if i not in tokens.tokens or i >= rows]
    if missing:
        yield Finding(
            check="T7",
            verdict=Verdict.FATAL,
            subject="EOS ids that cannot be sampled",
            evidence=f"{tokens.show(missing)}: no token or no embedding row (of {rows:,})",
            fix="take the ids from tokenizer.convert_tokens_to_ids",
            where=f"{stops.source}: eos_token_id",
        )
    plain = [i for i in stops.ids if i not in missing and i not in tokens.special and i not in stops.extra]
    if plain:
        yield Finding(
            check="T7",
            verdict=Verdict.WARN,
            subject="EOS ids that are ordinary text",
            evidence=f"{tokens.show(plain)}: not special, so any text with it ends a completion",
            fix="use a special token as EOS",
            where=f"{stops.source}: eos_token_id",
        )


def _disagreeing(tokens: TokenizerFacts, stops: Stops) -> Iterator[Finding]:
    others = {
        "tokenizer_config.json: eos_token": (stops.tokenizer,) if stops.tokenizer is not None else (),
        "config.json: eos_token_id": stops.config or (),
    }
    for where, ids in others.items():
        absent = [i for i in ids if i not in stops.ids]
        if absent:
            yield Finding(
                check="T7",
                verdict=Verdict.WARN,
                subject="EOS ids disagree",
                evidence=f"{where} says {tokens.show(absent)}, the {stops.source} stops at "
                f"{tokens.show(stops.ids)}: masks and counts follow the one, sampling the other",
                fix=f"model.generation_config.eos_token_id = {sorted({*stops.ids, *absent})}, or one for both",
                where=where,
            )


def check_pad(
    tokens: TokenizerFacts,
    rendering: Rendering | None,
    model: ModelFacts | None,
    stops: Stops,
    *,
    own_padding: bool = False,
) -> Iterator[Finding]:
    """T8: there is a pad token, it has a row, and masks built by its value lose no stop.

    ``own_padding``: the trainer masks by position, so that padding may share the id of a stop.
    """
    if tokens.pad is None:
        yield Finding(
            check="T8",
            verdict=Verdict.INFO if own_padding else Verdict.WARN,
            subject="No pad token",
            evidence="tokenizer.pad_token is None: trainers then take EOS, and masks by value lose every EOS"
            + (_BY_POSITION if own_padding else ""),
            fix="tokenizer.pad_token = a token of its own that the model never writes (a reserved one), and "
            "model.config.pad_token_id to match",
            where="tokenizer_config.json: pad_token",
        )
        return
    yield from _other_pads(tokens, stops)
    verdict, subject, why = _pad(tokens, rendering, model, stops)
    if own_padding and verdict is Verdict.WARN:
        verdict, why = Verdict.INFO, why + _BY_POSITION
    clean = verdict is Verdict.OK
    yield Finding(
        check="T8",
        verdict=verdict,
        subject=subject,
        evidence=f"pad is {tokens.show([tokens.pad])}{why}",
        fix="" if clean else "tokenizer.pad_token = a token of its own that is no stop (a reserved or unused one)",
        where="" if clean else "tokenizer_config.json: pad_token",
    )


def _other_pads(tokens: TokenizerFacts, stops: Stops) -> Iterator[Finding]:
    if stops.sampler_pad is not None and stops.sampler_pad != tokens.pad:
        yield Finding(
            check="T8",
            verdict=Verdict.WARN,
            subject="Generation pads with another token",
            evidence=f"finished rows are filled with {tokens.show([stops.sampler_pad])}, the tokenizer's pad is "
            f"{tokens.show([tokens.pad or 0])}: a mask by the tokenizer's pad takes the other for text",
            fix="model.generation_config.pad_token_id = tokenizer.pad_token_id",
            where="generation_config.json: pad_token_id",
        )


def _pad(
    tokens: TokenizerFacts, rendering: Rendering | None, model: ModelFacts | None, stops: Stops
) -> tuple[Verdict, str, str]:
    pad, end = tokens.pad, turn_end(tokens, rendering) if rendering is not None else None
    if model is not None and model.rows is not None and pad is not None and pad >= model.rows:
        return Verdict.FATAL, "Pad has no embedding row", f", the model has {model.rows:,} rows"
    if pad == end:
        lost = ", which also ends every turn: a mask built by value hides it and the model unlearns to stop"
        return Verdict.WARN, "Pad is the turn's end", lost
    if pad == stops.tokenizer or (pad in stops.ids and rendering is None):
        return Verdict.WARN, "Pad is EOS", ", which is EOS too: a mask built by value hides each EOS"
    if pad in stops.ids:
        kept = f"; turns end with {tokens.show([end])}, which masks by value keep" if end is not None else ""
        return Verdict.INFO, "Pad is a second stop", f", also a stop{kept}"
    return Verdict.OK, "Pad is apart from every stop", ""
