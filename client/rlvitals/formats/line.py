"""What terminals, progress bars and Ray put around a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_WORKER = re.compile(r"\((?P<who>[^\s()]+(?: pid=\d+)?(?:, ip=[^)]+)?)\)")
_REPEATED = re.compile(r"\[repeated \d+x across[^\]]*\]")
LENGTH_MAX = 1 << 20
WHO_MAX = 300
"""Characters of a worker's name; a log has few of them, again and again."""


def fragments(text: str) -> Sequence[str]:
    """The parts of a line between carriage returns, without colours: a progress bar and a record share one."""
    plain = _ESCAPES.sub("", text) if "\x1b" in text else text
    if "\r" in plain:
        return [part.rstrip("\n") for part in plain.split("\r") if part and not part.isspace()]
    return (plain.rstrip("\n"),) if plain and not plain.isspace() else ()


def is_progress(fragment: str) -> bool:
    """Whether it is a progress bar and nothing else: one may stand between the parts of a wrapped record."""
    return (
        fragment.endswith(("it/s]", "s/it]", "?it/s]"))
        and "%|" in fragment
        and "{" not in fragment
        and "step:" not in fragment
    )


def worker(text: str) -> tuple[str, str]:
    """(who printed it, the line) where Ray says so, else ("", the line)."""
    head = text if text[:1] == "(" else text.lstrip()
    if head[:1] != "(":
        return "", text
    end = head.find(")", 0, WHO_MAX) + 1
    who = _who(head[:end]) if end else ""
    if not who:
        return "", text
    said = head[end + 1 :] if head[end : end + 1].isspace() else head[end:]
    at = said.rfind("[repeated ") if said.rstrip()[-1:] == "]" else -1
    if at >= 0 and _REPEATED.fullmatch(said[at:].rstrip()) is not None:
        said = said[:at].rstrip()
    return who, said


@lru_cache(maxsize=4096)
def _who(prefix: str) -> str:
    found = _WORKER.fullmatch(prefix)
    return found["who"] if found is not None and "pid=" in found["who"] else ""
