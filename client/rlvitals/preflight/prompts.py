"""T15 and T16: do prompts end where the assistant begins, with turns in order, and does no content steer them?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rlvitals.guard import outcome
from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.markers import first_control
from rlvitals.preflight.passage import Passage
from rlvitals.preflight.spans import SHOWN, cut
from rlvitals.preflight.stops import Stops, turn_end
from rlvitals.preflight.template import NO_TEMPLATE, Rendering
from rlvitals.preflight.tokenizer_facts import TokenizerFacts

_TAGS = ("<think>", "</think>")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFormat:
    """What every prompt of a template has: it ends with ``suffix``; ``start`` and ``end`` open and close turns.

    ``open_turns`` is starts less ends in the template's own prompts, None where it is not the same in all of them.
    """

    suffix: tuple[int, ...]
    start: int | None
    end: int | None
    open_turns: int | None
    finals: frozenset[int]

    @classmethod
    def of(cls, tokens: TokenizerFacts, rendering: Rendering, stops: Stops) -> PromptFormat:
        marker = tokens.encode(rendering.generation_prompt)
        start, end = first_control(tokens, marker), turn_end(tokens, rendering)
        prompts = [text for text in (rendering.prompt, rendering.asked_again) if text]
        counted = {_open_turns(tokens.encode(text), start, end) for text in prompts}
        one = next(iter(counted)) if len(counted) == 1 else None
        finals = frozenset(stops.ids) - {end, *tokens.encode(rendering.asked_again or rendering.prompt)}
        return cls(suffix=tuple(marker), start=start, end=end, open_turns=one, finals=finals)

    def rendered(self, ids: Sequence[int]) -> bool:
        """Whether a text holds turns at all; one that does not is still to be rendered."""
        return self.start in ids or self.end in ids

    def breaks(self, ids: Sequence[int]) -> Iterator[str]:
        """What is wrong with the ids of a rendered prompt."""
        ending = tuple(ids[-len(self.suffix) :])
        if ending != self.suffix:
            yield f"it ends with {list(ending)}, not with the generation prompt {list(self.suffix)}"
        if self.open_turns is not None:
            opened = _open_turns(ids, self.start, self.end)
            if opened != self.open_turns:
                yield f"{opened} turns are open at its end (starts less ends), not {self.open_turns}"
        if self.start is not None and self.end in ids and self.start not in ids[: list(ids).index(self.end or 0)]:
            yield "its first turn has no start (cut by truncation?)"
        early = [i for i in ids if i in self.finals]
        if early:
            yield f"EOS {early[0]} stands inside it"


def _open_turns(ids: Sequence[int], start: int | None, end: int | None) -> int:
    counts = Counter(ids)
    return counts[start if start is not None else -1] - counts[end if end is not None else -1]


def tell_refusal(error: str) -> Finding:
    """T15 for a template that raises for this tokenizer."""
    return Finding(
        check="T15",
        verdict=Verdict.FATAL,
        subject="The chat template cannot be rendered",
        evidence=error,
        fix="take the chat_template that ships with this tokenizer",
        where="tokenizer_config.json: chat_template",
    )


def check_prompts(
    tokens: TokenizerFacts, rendering: Rendering | None, stops: Stops, prompts: Iterable[Passage] = ()
) -> Iterator[Finding]:
    """T15: the template opens the assistant's turn, and texts that are prompts already keep its format."""
    if rendering is None:
        yield Finding(check="T15", verdict=Verdict.SKIPPED, subject="Prompt format", evidence=NO_TEMPLATE)
        return
    if rendering.prompt == rendering.opened and _header(rendering.lead):
        yield Finding(
            check="T15",
            verdict=Verdict.FATAL,
            subject="The template writes no generation prompt",
            evidence=f"add_generation_prompt changes nothing, and {rendering.lead!r} stands between prompt and "
            "answer: the model must write the assistant's header itself",
            fix="end the chat_template with {% if add_generation_prompt %}…{% endif %}",
            where="tokenizer_config.json: chat_template",
        )
        return
    form = PromptFormat.of(tokens, rendering, stops)
    encoded = {p.where: outcome(tokens.encode, p.text)[0] or [] for p in prompts}
    broken = {where: list(form.breaks(ids)) for where, ids in encoded.items() if form.rendered(ids)}
    wrong = [f"{where}: {'; '.join(what)}" for where, what in broken.items() if what]
    if wrong:
        yield Finding(
            check="T15",
            verdict=Verdict.FATAL,
            subject="Prompts that break the template",
            evidence=f"{len(wrong):,} of {len(broken):,}: " + " | ".join(wrong[:SHOWN]),
            fix="render prompts with tokenizer.apply_chat_template(messages, add_generation_prompt=True)",
            where=next(where for where, what in broken.items() if what),
        )
        return
    fact = f"prompts end with {tokens.show(form.suffix)}; {len(broken):,} rendered prompts in the data"
    yield Finding(check="T15", verdict=Verdict.OK, subject="Prompt format", evidence=fact)


def _header(lead: str) -> bool:
    for tag in _TAGS:
        lead = lead.replace(tag, "")
    return bool(lead.strip())


def check_injection(tokens: TokenizerFacts, passages: Iterable[Passage]) -> Iterator[Finding]:
    """T16: no user's (or tool's) content holds the text of a special token, which is parsed as the token."""
    control, looked = tokens.control, 0
    found: dict[int, str] = {}
    for passage in passages:
        if passage.role in ("user", "tool"):
            looked += 1
            for token_id in outcome(tokens.encode, passage.text)[0] or ():
                if token_id in control:
                    found.setdefault(token_id, passage.where)
    if not looked:
        reason = "no messages of users were given"
        yield Finding(
            check="T16", verdict=Verdict.SKIPPED, subject="No control tokens in content", evidence=reason
        )
    elif not found:
        fact = f"none in {looked:,} messages"
        yield Finding(check="T16", verdict=Verdict.OK, subject="No control tokens in content", evidence=fact)
    else:
        yield Finding(
            check="T16",
            verdict=Verdict.WARN,
            subject="Control tokens inside users' content",
            evidence=cut([f"{tokens.show([i])} at {where}" for i, where in found.items()], "tokens")
            + f" ({looked:,} messages looked at): content can end a turn or open another",
            fix="take these texts out of the data, or encode content with split_special_tokens=True",
            where=next(iter(found.values())),
        )
