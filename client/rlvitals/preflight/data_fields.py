"""Which columns of a row are prompt and answer, and their text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

PROMPT_KEYS = (
    "prompt",
    "raw_prompt",
    "messages",
    "conversations",
    "question",
    "instruction",
    "problem",
    "query",
    "input",
)
ANSWER_KEYS = ("completion", "completions", "response", "output", "chosen", "generated_text", "solution", "answer")
TEXT_KEYS = ("text", "content")
TRANSCRIPT_KEYS = frozenset({"messages", "conversations"})
"""Columns of whole dialogues, whose last turn is the answer if the assistant has it."""
LABEL_KEYS = frozenset({"answer", "solution"})
"""Columns that often hold a label to compare with, and not an answer as the model writes it."""
STRINGS_MAX = 10_000
"""Strings of one row that are looked at."""

Turn = tuple[str, str]
Part = "str | list[Turn] | None"


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns of prompt and answer; empty where there is none."""

    prompt: str = ""
    answer: str = ""

    @classmethod
    def of(cls, row: Mapping[str, object], prompt: str = "", answer: str = "") -> Columns:
        """The first known names that a row has; ``prompt`` and ``answer`` win where they are given."""
        if not prompt:
            prompt = next((key for key in (*PROMPT_KEYS, *TEXT_KEYS) if key in row), "")
        if not answer:
            answer = next((key for key in ANSWER_KEYS if key in row and key != prompt), "")
        return cls(prompt, answer)


@dataclass(frozen=True, slots=True)
class Example:
    """Prompt and answer of a row: a string, turns of (role, text), or None.

    ``whole`` if one string holds a rendered dialogue, so that the prompt may end with its answer.
    """

    prompt: str | list[Turn] | None
    answer: str | list[Turn] | None
    whole: bool = False


def example(row: Mapping[str, object], columns: Columns) -> Example:
    prompt = _part(row.get(columns.prompt))
    answer = _part(row.get(columns.answer)) if columns.answer else None
    dialogue = columns.prompt in TRANSCRIPT_KEYS and isinstance(prompt, list) and answer is None
    if dialogue and prompt and prompt[-1][0] in ("assistant", "model"):
        return Example(prompt[:-1], prompt[-1:])
    whole = columns.prompt in TEXT_KEYS and not columns.answer
    return Example(prompt, answer, whole)


def text_of(part: str | list[Turn] | None) -> str:
    """The words of a part, without any template."""
    if part is None:
        return ""
    return part if isinstance(part, str) else "\n".join(text for _, text in part)


def strings(value: object) -> Iterator[str]:
    """Every string in a value, keys included, without recursion and bounded."""
    waiting: list[object] = [value]
    seen = 0
    while waiting and seen < STRINGS_MAX:
        item = waiting.pop()
        seen += 1
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            waiting.extend(item.values())
            waiting.extend(item.keys())
        elif isinstance(item, (list, tuple)):
            waiting.extend(item)


def _part(value: object) -> str | list[Turn] | None:
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        if value and all(isinstance(item, str) for item in value):
            return str(value[0])
        turns = [_turn(item) for item in value]
        return [turn for turn in turns if turn is not None]
    return None


def _turn(item: object) -> Turn | None:
    if not isinstance(item, Mapping):
        return None
    role = item.get("role", item.get("from"))
    content = item.get("content", item.get("value"))
    if role is None and content is None:
        return None
    text = _content(content)
    if not text.strip():
        text = next((str(item[key]) for key in _INSTEAD if item.get(key)), text)
    return _ROLES.get(str(role), str(role)), text


_ROLES = {"human": "user", "gpt": "assistant", "bot": "assistant"}
_INSTEAD = ("tool_calls", "function_call", "reasoning_content")
"""What a turn may consist of without any content: it is no empty one."""


def _content(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return _part_of_turn(content)
    if isinstance(content, Sequence):
        return "".join(_part_of_turn(part) for part in content if isinstance(part, Mapping))
    return ""


def _part_of_turn(part: Mapping[str, object]) -> str:
    """Its text; of an image or a sound only that it is one."""
    text = part.get("text")
    if isinstance(text, str):
        return text
    kind = part.get("type")
    return f"[{kind}]" if isinstance(kind, str) and kind != "text" else ""
