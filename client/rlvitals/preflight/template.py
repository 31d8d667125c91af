"""What a chat template writes: the same few conversations, rendered once, for all checks to look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlvitals.guard import outcome
from rlvitals.preflight.tokenizer_facts import TokenizerFacts

QUESTION, ANSWER = "ZQU", "ZQX"
AGAIN, ONCE_MORE, THOUGHT = "ZQV", "ZQY", "ZQW"
"""Words that no template writes by itself."""
THINK = "<think>"
NO_TEMPLATE = "no chat template, or none that could be rendered"
_SPECIALS = ("bos_token", "eos_token", "unk_token", "pad_token")

Messages = list[dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """Texts of one template. ``opened`` is a user's turn, ``prompt`` the same with the generation prompt.

    ``answered`` is [user, assistant], ``dialogue`` [user, assistant, user, assistant], ``asked_again``
    [user, assistant, user] with the generation prompt, ``thought`` the same where the assistant thought before;
    these three are "" for a template that refuses them. ``pairs`` are prompts, each with the text of prompt and
    answer; where the generation prompt opens the thinking, the answer has some.
    """

    source: str = field(repr=False)
    opened: str
    prompt: str
    answered: str
    dialogue: str = ""
    asked_again: str = ""
    thought: str = ""
    pairs: tuple[tuple[str, str], ...] = ()

    @property
    def tail(self) -> str:
        """What ends an assistant's turn: all text after its content."""
        return self.answered[self.answered.rindex(ANSWER) + len(ANSWER) :]

    @property
    def lead(self) -> str:
        """What stands between the generation prompt's end and the content in a finished turn."""
        before = self.answered[: self.answered.rindex(ANSWER)]
        return before[len(self.prompt) :] if before.startswith(self.prompt) else ""

    @property
    def generation_prompt(self) -> str:
        """What opens an assistant's turn; where a template adds nothing for it, all between the user's content and
        the answer."""
        if self.prompt.startswith(self.opened) and len(self.prompt) > len(self.opened):
            return self.prompt[len(self.opened) :]
        before = self.answered[: self.answered.rindex(ANSWER)]
        return before[before.rindex(QUESTION) + len(QUESTION) :]

    @property
    def marker(self) -> str:
        """What starts an assistant's turn: the generation prompt up to the thinking."""
        return self.generation_prompt.partition(THINK)[0] or self.generation_prompt


def render(facts: TokenizerFacts, template: str) -> tuple[Rendering | None, str]:
    """The conversations under ``template``, and why it cannot be rendered or "".

    A template that fails since the tokenizer lacks a special token is rendered with that token empty: then both
    the error and the texts are given.
    """
    made, error = _render(facts, template, {})
    if made is not None:
        return made, ""
    absent = {name: "" for name in _SPECIALS if getattr(facts.source, name, None) is None}
    return _render(facts, template, absent)[0], error


def _render(facts: TokenizerFacts, template: str, specials: dict[str, str]) -> tuple[Rendering | None, str]:
    user, answer = _turn("user", QUESTION), _turn("assistant", ANSWER)
    more, last = _turn("user", AGAIN), _turn("assistant", ONCE_MORE)
    needed: list[str] = []
    for messages, adding in (([user], False), ([user], True), ([user, answer], False)):
        text, error = outcome(_apply, facts, template, messages, adding, specials)
        if text is None:
            return None, error
        needed.append(text)
    opened, prompt, answered = needed
    if QUESTION not in answered or ANSWER not in answered:
        return None, "the rendered text does not hold the messages' content"

    def may(messages: Messages, adding: bool = False) -> str:
        return outcome(_apply, facts, template, messages, adding, specials)[0] or ""

    def finished(before: Messages, content: str, asked: str) -> str:
        """An answer with thinking, written in the way in which it follows the prompt at once, if there is one."""
        texts = [may([*before, turn]) for turn in _thinking(content)]
        return next((text for text in texts if text.startswith(asked + THOUGHT)), texts[0])

    dialogue, asked_again = may([user, answer, more, last]), may([user, answer, more], True)
    whole = answered, dialogue
    if prompt.rstrip().endswith(THINK):
        whole = finished([user], ANSWER, prompt), finished([user, answer, more], ONCE_MORE, asked_again)
    return Rendering(
        source=template,
        opened=opened,
        prompt=prompt,
        answered=answered,
        dialogue=dialogue,
        asked_again=asked_again,
        thought=may([user, _thinking(ANSWER)[0], more], True),
        pairs=tuple((p, w) for p, w in zip((prompt, asked_again), whole, strict=True) if p and w),
    ), ""


def _turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _thinking(content: str) -> list[dict[str, str]]:
    """The two ways to write an answer with its thinking."""
    return [
        _turn("assistant", f"{THINK}\n{THOUGHT}\n</think>\n\n{content}"),
        {**_turn("assistant", content), "reasoning_content": THOUGHT},
    ]


def _apply(
    facts: TokenizerFacts, template: str, messages: Messages, adding: bool, specials: dict[str, str]
) -> str:
    tokenizer: Any = facts.source
    if hasattr(tokenizer, "apply_chat_template"):
        text = tokenizer.apply_chat_template(
            messages, chat_template=template, tokenize=False, add_generation_prompt=adding, **specials
        )
        return str(text)
    from transformers.utils.chat_template_utils import render_jinja_template

    names: dict[str, Any] = dict(specials)
    rendered = render_jinja_template([messages], chat_template=template, add_generation_prompt=adding, **names)
    return str((rendered[0] if isinstance(rendered, tuple) else rendered)[0])
