"""Text from outside within another's Markdown or HTML: shown as it is, acting as nothing.

The chat programs that read Markdown do not agree on escapes, so what could act is replaced by a sign that looks
alike and means nothing in any of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rlvitals_monitor.notify.message import Link, Message
from rlvitals_monitor.notify.plain_text import clip
from rlvitals_monitor.notify.room import fitting, utf16

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
        over = utf16(shown) - units
        if over <= 0:
            return shown
        characters -= max(over // 2, 1)


def as_markdown(message: Message, octets: int) -> str:
    """A heading, paragraphs and a quote, within ``octets`` of UTF-8. The end is cut, links are whole."""
    facts = "\n".join(f"> {inert(label)}: {inert(text)}  " for label, text in message.facts)
    links = _links(message.links, octets // 2)
    parts = [
        f"### {inert(message.title)}",
        clip(inert(message.summary), characters=octets, octets=octets // 4),
        facts,
    ]
    parts += [
        clip(f"{inert(section.label)}: {inert(section.text)}", characters=octets, octets=octets // 5)
        for section in message.sections
    ]
    room = octets - len(links.encode())
    return clip("\n\n".join(part for part in parts if part), characters=octets, octets=room) + links


def _links(links: Sequence[Link], octets: int) -> str:
    told = [f"[{inert(link.text)}]({link.url})" for link in links]
    shown = fitting(told, octets, lambda link: len(link.encode()) + 3)
    return "\n\n" + " | ".join(shown) if shown else ""
