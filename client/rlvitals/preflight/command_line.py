"""The words of a command line or shell script as settings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

_ASSIGNED = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)$", re.MULTILINE)
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)(?::?-([^}]*))?\}?")
_OVERRIDE = re.compile(r"^\+{0,2}([A-Za-z_][\w./@-]*)=(.*)$", re.DOTALL)
_FLAG = re.compile(r"^--([A-Za-z][\w.-]*)(?:=(.*))?$", re.DOTALL)


def command_words(text: str) -> list[str]:
    """Words of a shell script or command line, its own variables put in where they are plain."""
    text = text.replace("\\\r\n", " ").replace("\\\n", " ")
    variables = {name: value.strip().strip("'\"") for name, value in _ASSIGNED.findall(text) if "$(" not in value}

    def known(match: re.Match[str]) -> str:
        value = variables.get(match.group(1), match.group(2))
        return match.group() if value is None or "$" in value or value.startswith("(") else value

    words: list[str] = []
    for line in _VARIABLE.sub(known, text).splitlines():
        try:
            words += shlex.split(line, comments=True)
        except ValueError:
            # an odd quote in a line that is no command must not hide the others
            words += line.split()
    return words


def words_to_values(words: Sequence[str]) -> Iterator[tuple[str, object]]:
    """``--key value …``, ``--key=value``, ``--flag`` and hydra's ``key=value`` of a command line, in order."""
    at = 0
    while at < len(words):
        flag, override = _FLAG.match(words[at]), _OVERRIDE.match(words[at])
        at += 1
        if flag is not None:
            name = flag.group(1).replace("-", "_")
            if flag.group(2) is not None:
                yield name, scalar(flag.group(2))
                continue
            begin = at
            while (
                at < len(words)
                and not _FLAG.match(words[at])
                and not _OVERRIDE.match(words[at])
                and words[at] != ")"
            ):
                at += 1
            taken = [scalar(word) for word in words[begin:at]]
            yield name, True if not taken else taken[0] if len(taken) == 1 else taken
        elif override is not None and ("." in override.group(1) or words[at - 1].startswith("+")):
            yield override.group(1), scalar(override.group(2))


def scalar(text: str) -> object:
    """A word as number, truth, null or list where it is one; else itself."""
    word = text.strip().strip("'\"")
    lowered = word.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if lowered in ("null", "none", "~", ""):
        return None
    try:
        return int(word)
    except ValueError:
        pass
    try:
        return float(word)
    except ValueError:
        pass
    return [scalar(part) for part in word[1:-1].split(",")] if word[:1] + word[-1:] == "[]" else word
