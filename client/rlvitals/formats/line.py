"""What terminals, progress bars and Ray put around a line."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_WORKER = re.compile(r"\((?P<who>[^\s()]+(?: pid=\d+)?(?:, ip=[^)]+)?)\)\s?")
_REPEATED = re.compile(r"\[repeated \d+x across[^\]]*\]")
LENGTH_MAX = 1 << 20


def fragments(text: str) -> Iterator[str]:
    """The parts of a line between carriage returns, without colours: a progress bar and a record share one."""
    plain = _ESCAPES.sub("", text) if "\x1b" in text else text
    for part in plain.split("\r"):
        if part and not part.isspace():
            yield part.rstrip("\n")


def worker(text: str) -> tuple[str, str]:
    """(who printed it, the line) where Ray says so, else ("", the line)."""
    head = text.lstrip()
    if not head.startswith("("):
        return "", text
    found = _WORKER.match(head)
    if found is None or "pid=" not in found["who"]:
        return "", text
    said = head[found.end() :]
    at = said.rfind("[repeated ")
    if at >= 0 and _REPEATED.fullmatch(said[at:].rstrip()) is not None:
        said = said[:at].rstrip()
    return found["who"], said
