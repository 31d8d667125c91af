"""Turn markers of the well-known chat templates, and where a rendered text breaks their order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlvitals.preflight.data_faults import Fault

EVENTS_MAX = 2000
"""Markers of one text that are looked at."""
TAIL_CHARS, OPENERS_CHARS = 256, 1000
ROLES = frozenset(
    {"system", "developer", "user", "assistant", "model", "tool", "function", "ipython", "observation"}
)
ASSISTANT = frozenset({"assistant", "model"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A turn begins with ``start`` (its first group is the role) and ends with one of ``ends``.

    ``marker`` names the start in messages. Where ``answers_only``, only the assistant's turns have an end, and
    a system text without a marker of its own may stand between the beginning of the sequence and the first turn.
    Where ``ends_optional``, relatives of the template have no ends at all.
    """

    name: str
    marker: str
    start: re.Pattern[str]
    ends: tuple[str, ...]
    answers_only: bool = False
    ends_optional: bool = False


TEMPLATES: tuple[Template, ...] = (
    Template(name="ChatML", marker="<|im_start|>", start=re.compile(r"<\|im_start\|>(\w*)"), ends=("<|im_end|>",)),
    Template(
        name="Llama 3",
        marker="<|start_header_id|>",
        start=re.compile(r"<\|start_header_id\|>(\w*)<\|end_header_id\|>"),
        ends=("<|eot_id|>", "<|eom_id|>"),
    ),
    Template(
        name="Gemma",
        marker="<start_of_turn>",
        start=re.compile(r"<start_of_turn>(\w*)"),
        ends=("<end_of_turn>",),
    ),
    Template(
        name="DeepSeek",
        marker="<｜User｜>",
        start=re.compile("<｜(User|Assistant)｜>"),
        ends=("<｜end▁of▁sentence｜>",),
        answers_only=True,
    ),
    Template(
        name="Phi",
        marker="<|user|>",
        start=re.compile(r"<\|(system|user|assistant|tool)\|>"),
        ends=("<|end|>", "</s>"),
        ends_optional=True,
    ),
    Template(
        name="Llama 2 or Mistral",
        marker="[INST]",
        start=re.compile(r"\[(INST|/INST)\]"),
        ends=("</s>",),
        answers_only=True,
    ),
)
_ROLE_OF = {"INST": "user", "/INST": "assistant", "User": "user", "Assistant": "assistant"}
_OPENERS = re.compile(
    r"(?:\s|<s>|<bos>|<\|begin_of_text\|>|<｜begin▁of▁sentence｜>|<\|endoftext\|>|\[gMASK\]|<sop>|<<SYS>>)*"
)
_FULLWIDTH_BAR = "｜".encode()
_ESCAPED = re.compile(rb"\\u(?:003[cC]|[fF][fF]5[cC])")
"""``<`` and ``｜`` as JSON may write them."""
_NEAR = re.compile(
    r"<[ \t]{0,2}\|?[ \t]{0,2}/?"
    r"(?i:im_start|im_end|endoftext|eot_id|start_header_id|end_header_id|begin_of_text|end_of_text)"
    r"[ \t]{0,2}\|?[ \t]{0,2}>?"
    r"|<[ \t]{0,2}(?i:start_of_turn|end_of_turn)[ \t]{0,2}>?"
    r"|\|(?i:im_start|im_end|eot_id)\|>?"
)
_EXACT = frozenset(
    {"<start_of_turn>", "<end_of_turn>"}
    | {
        f"<|{name}|>"
        for name in (
            "im_start",
            "im_end",
            "endoftext",
            "eot_id",
            "start_header_id",
            "end_header_id",
            "begin_of_text",
            "end_of_text",
        )
    }
)
_NAMES = ("im_", "endoftext", "eot_id", "header_id", "of_text", "of_turn")
"""One of these stands once in each exact marker."""

Break = tuple[Fault, str]


def hinted(raw: bytes) -> bool:
    """Whether bytes may hold a turn marker or a damaged one; False is sure."""
    if b"<" in raw and (b"<|" in raw or b"_of_turn" in raw or b"im_" in raw or _FULLWIDTH_BAR in raw):
        return True
    return b"INST]" in raw or b"|im_" in raw or b"|eot_id|" in raw or _ESCAPED.search(raw) is not None


def template_of(text: str) -> Template | None:
    """The template whose markers stand in a text (a start or an end); None without any."""
    for template in TEMPLATES:
        if template.start.search(text) is not None or (template.ends[0] != "</s>" and template.ends[0] in text):
            return template
    return None


def near_misses(text: str, specials: frozenset[str] = frozenset()) -> Iterator[str]:
    """Damaged forms of special tokens, such as ``<|im_end |>``: ordinary text to the tokenizer."""
    lowered = text.lower()
    if sum(map(lowered.count, _NAMES)) == sum(map(text.count, _EXACT)):
        # every name stands in a whole marker, which is far quicker to see than a damaged one
        return
    for match in _NEAR.finditer(text):
        if match.group() not in _EXACT and match.group() not in specials:
            yield match.group()


def breaks(text: str, template: Template, *, answered: bool) -> Iterator[Break]:
    """Where a rendered text breaks the order of turns. ``answered`` if it should end with a finished answer."""
    events = _events(text, template)
    first = events[0] if events else None
    found = list(_turn_breaks(events, template))
    if first is not None and not _may_precede(text[: first[0]], template):
        found.insert(0, (Fault.NO_TURN_START, f"{text[:40]!r} stands before the first turn"))
    yield from found
    if not found:
        # roles of a text with a lost marker would only tell the same again
        yield from role_breaks([role for _, role in events if role])
    last = events[-1] if events else None
    if last is None:
        return
    if answered and last[1] and _needs_end(last[1], template, events):
        yield Fault.NO_EOS, f"ends with {text[-30:]!r}, not with {template.ends[0]}"
    if not answered and last[1] not in ASSISTANT:
        yield Fault.NO_GENERATION_PROMPT, f"ends with {text[-30:]!r}"


def role_breaks(roles: Sequence[str]) -> Iterator[Break]:
    """The first role that no template knows, that comes too late, too early or twice in a row."""
    for at, role in enumerate(roles):
        before = roles[at - 1] if at else ""
        if role not in ROLES:
            yield Fault.ROLES, f"turn {at + 1} has the role {role!r}"
        elif role == "system" and at:
            yield Fault.ROLES, f"turn {at + 1} is a system turn after {before!r}"
        elif role in ASSISTANT and not any(earlier not in ("system", "developer") for earlier in roles[:at]):
            yield Fault.ROLES, f"turn {at + 1} answers before anything was asked"
        elif role == before and (role == "user" or role in ASSISTANT):
            yield Fault.ROLES, f"turns {at} and {at + 1} are both {role!r}"
        else:
            continue
        return


def waits(text: str, template: Template) -> bool:
    """Whether a rendered prompt ends with the assistant's turn start, as it must to be answered."""
    events = _events(text[-TAIL_CHARS:], template) or _events(text, template)
    return bool(events) and events[-1][1] in ASSISTANT


def _may_precede(text: str, template: Template) -> bool:
    if len(text) <= OPENERS_CHARS and _OPENERS.fullmatch(text) is not None:
        return True
    begun = text.startswith(("<s>", "<｜begin▁of▁sentence｜>", "["))
    return template.answers_only and begun


def _events(text: str, template: Template) -> list[tuple[int, str]]:
    """Marker positions with the role that begins there, empty for an end, in the order of the text."""
    events: list[tuple[int, str]] = []
    for match in template.start.finditer(text):
        role = match.group(1)
        events.append((match.start(), _ROLE_OF.get(role, role) or "?"))
        if len(events) >= EVENTS_MAX:
            break
    for end in template.ends:
        at = text.find(end)
        while at >= 0 and len(events) < 2 * EVENTS_MAX:
            events.append((at, ""))
            at = text.find(end, at + len(end))
    return sorted(events)


def _turn_breaks(events: Sequence[tuple[int, str]], template: Template) -> Iterator[Break]:
    """At most one missing start and one missing end of a text."""
    opened, no_start, no_end, turns = "", False, False, 0
    for _, role in events:
        turns += bool(role)
        if not role and not opened and not no_start:
            no_start = True
            yield Fault.NO_TURN_START, f"{template.ends[0]} ends a turn that no {template.marker} began"
        if role and opened and not no_end and _needs_end(opened, template, events):
            no_end = True
            yield Fault.NO_TURN_END, f"turn {turns - 1} ({opened}) has no {template.ends[0]}"
        opened = role


def _needs_end(role: str, template: Template, events: Sequence[tuple[int, str]]) -> bool:
    if template.ends_optional and all(other for _, other in events):
        return False
    return not template.answers_only or role in ASSISTANT
