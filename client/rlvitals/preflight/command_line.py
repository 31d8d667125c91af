"""The words of a command line or shell script as settings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

_ASSIGNED = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)=(.*)$", re.MULTILINE)
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)(?::?-([^}]*))?\}?")
_OVERRIDE = re.compile(r"^\+{0,2}([A-Za-z_][\w./@-]*)=(.*)$", re.DOTALL)
END = ";"
_OPERATOR = re.compile(r"^(?:[|&;)]+|\d?[<>].*|&>.*)$", re.DOTALL)
_FLAG = re.compile(r"^--([A-Za-z][\w.-]*)(?:=(.*))?$", re.DOTALL)


def command_words(text: str) -> list[str]:
    """Words of a shell script or command line with its own plain variables put in, and ``;`` after each line."""
    text = text.replace("\\\r\n", " ").replace("\\\n", " ")
    variables = {name: _first(value) for name, value in _ASSIGNED.findall(text) if "$(" not in value}

    def known(match: re.Match[str]) -> str:
        value = variables.get(match.group(1), match.group(2))
        return match.group() if value is None or "$" in value or value.startswith("(") else value

    words: list[str] = []
    for line in _VARIABLE.sub(known, text).splitlines():
        words += [*_split(line), END]
    return words


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        # an odd quote in a line that is no command must not hide the others
        return line.split()


def _first(value: str) -> str:
    return next(iter(_split(value)), "")


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
            while at < len(words) and not _ends_values(words[at]):
                at += 1
            # what a shell would unfold behind a value ("--lr 1e-6 $MORE") is no part of it
            taken = [scalar(word) for k, word in enumerate(words[begin:at]) if k == 0 or "$" not in word]
            yield name, True if not taken else taken[0] if len(taken) == 1 else taken
        elif override is not None and ("." in override.group(1) or words[at - 1].startswith("+")):
            yield override.group(1), scalar(override.group(2))


def _ends_values(word: str) -> bool:
    return any(pattern.match(word) for pattern in (_FLAG, _OVERRIDE, _OPERATOR))


def scalar(text: str) -> object:
    """A word as number, truth, null or flat list where it is one; else itself."""
    word = text.strip()
    if word[:1] == "[" and word[-1:] == "]":
        return [_scalar(part) for part in word[1:-1].split(",") if part.strip()]
    return _scalar(word)


def _scalar(text: str) -> object:
    word = text.strip().strip("'\"")
    lowered = word.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if lowered in ("null", "none", "~", ""):
        return None
    for number in (int, float):
        try:
            return number(word)
        except ValueError:
            continue
    return word
