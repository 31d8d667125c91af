"""Text from outside within another's Markdown or HTML: shown as it is, acting as nothing.

The chat programs that read Markdown do not agree on escapes, so what could act is replaced by a sign that looks
alike and means nothing in any of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rlvitals_monitor.notify.message import Message, clip

BREAK = "\u200b"
_ALIKE = str.maketrans("\\`*~#|<>[]!", "＼｀＊～＃｜＜＞［］！")
_LOOSE_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")


def inert(text: str) -> str:
    """No emphasis, heading, code, image, link, tag or mention is left. ``kl_coef`` stays, for it is copied."""
    return _LOOSE_UNDERSCORE.sub("＿", text.translate(_ALIKE))


def apart(text: str) -> str:
    """For text that is never parsed: what a later reader might take for a tag is broken by an empty sign."""
    return text.replace("<", f"<{BREAK}")


def clip_units(text: str, units: int, escape: Callable[[str], str] = lambda c: c) -> str:
    """As `clip`, in UTF-16: a sign beyond 16 bits counts twice, as it does for programs that count that way."""
    characters = units
    while True:
        shown = clip(text, characters=characters, escape=escape)
        over = len(shown.encode("utf-16-le")) // 2 - units
        if over <= 0:
            return shown
        characters -= max(over // 2, 1)


def as_markdown(message: Message, octets: int) -> str:
    """A heading, paragraphs and a quote, within ``octets`` of UTF-8. The end is cut, the link never is."""
    facts = "\n".join(f"> {inert(label)}: {inert(text)}  " for label, text in message.facts)
    advice = f"{inert(message.advice_label)}: {inert(message.advice)}" if message.advice else ""
    summary = clip(inert(message.summary), characters=octets, octets=octets // 3)
    link = f"\n\n[{message.link_text}]({message.link})" if message.link else ""
    parts = [f"### {inert(message.title)}", summary, facts, advice]
    room = octets - len(link.encode())
    return clip("\n\n".join(part for part in parts if part), characters=octets, octets=room) + link
