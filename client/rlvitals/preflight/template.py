"""What a chat template writes: the same few conversations, rendered once, for all checks to look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlvitals.guard import outcome
from rlvitals.preflight.tokenizer_facts import TokenizerFacts

QUESTION, ANSWER = "ZQU", "ZQX"
"""Words that no template writes by itself."""
AGAIN, ONCE_MORE, THOUGHT = "ZQV", "ZQY", "ZQW"

Messages = list[dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """Texts of one template. ``opened`` is a user's turn, ``prompt`` the same with the generation prompt.

    ``answered`` is [user, assistant], ``dialogue`` [user, assistant, user, assistant], ``asked_again``
    [user, assistant, user] with the generation prompt, ``thought`` the same where the assistant thought before;
    these three are "" for a template that refuses them.
    """

    source: str = field(repr=False)
    opened: str
    prompt: str
    answered: str
    dialogue: str = ""
    asked_again: str = ""
    thought: str = ""

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
    def marker(self) -> str:
        """What starts an assistant's turn: the generation prompt, or where a template adds none of its own, all
        between the user's content and the answer."""
        if self.prompt.startswith(self.opened) and len(self.prompt) > len(self.opened):
            return self.prompt[len(self.opened) :]
        before = self.answered[: self.answered.rindex(ANSWER)]
        return before[before.rindex(QUESTION) + len(QUESTION) :]


def render(facts: TokenizerFacts, template: str) -> tuple[Rendering | None, str]:
    """The conversations under ``template``, or None and why it cannot be rendered."""
    user, answer = {"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}
    more, last = {"role": "user", "content": AGAIN}, {"role": "assistant", "content": ONCE_MORE}
    thoughtful = {"role": "assistant", "content": f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}"}
    needed: list[str] = []
    for messages, adding in (([user], False), ([user], True), ([user, answer], False)):
        text, error = outcome(_apply, facts, template, messages, adding)
        if text is None:
            return None, error
        needed.append(text)
    if QUESTION not in needed[2] or ANSWER not in needed[2]:
        return None, "the rendered text does not hold the messages' content"
    return Rendering(
        source=template,
        opened=needed[0],
        prompt=needed[1],
        answered=needed[2],
        dialogue=outcome(_apply, facts, template, [user, answer, more, last], False)[0] or "",
        asked_again=outcome(_apply, facts, template, [user, answer, more], True)[0] or "",
        thought=outcome(_apply, facts, template, [user, thoughtful, more], True)[0] or "",
    ), ""


def _apply(facts: TokenizerFacts, template: str, messages: Messages, adding: bool) -> str:
    tokenizer: Any = facts.source
    if hasattr(tokenizer, "apply_chat_template"):
        text = tokenizer.apply_chat_template(
            messages, chat_template=template, tokenize=False, add_generation_prompt=adding
        )
        return str(text)
    from transformers.utils.chat_template_utils import render_jinja_template

    rendered = render_jinja_template([messages], chat_template=template, add_generation_prompt=adding)
    return str((rendered[0] if isinstance(rendered, tuple) else rendered)[0])
