"""Dictionaries as Python or JSON prints them, found in a line, with what no parser of literals takes.

``nan`` and ``inf`` are bare words in a printed dictionary, and NumPy 2 prints its scalars as calls.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from rlvitals.formats.numbers import number

LENGTH_MAX = 1 << 18
_NAMES: dict[str, float | None] = {
    "nan": math.nan,
    "NaN": math.nan,
    "inf": math.inf,
    "Infinity": math.inf,
    "true": 1.0,
    "false": 0.0,
    "null": None,
}
_OPENING = re.compile(r"\{\s*(?:['\"]|$)")
_QUOTE_OR_BRACE = re.compile(r"[{}'\"\\]")
# a flat dictionary of numbers and short strings, which is nearly all of them
_PAIR = re.compile(
    r"\s*(['\"])((?:(?!\1)[^\\])*)\1\s*:\s*(?:(['\"])((?:(?!\3)[^\\])*)\3|([-+]?[\w.]+(?:[-+]\d+)?))\s*(?:,|$)"
)

OF_STEPS = "global_step/max_steps"
"""ms-swift's step, as "10/500"."""

Flat = tuple[dict[str, float], tuple[str, ...]]


class Unreadable(ValueError):
    """No dictionary of numbers; the message says what was expected."""


def find(text: str) -> int:
    """Where a dictionary begins in ``text``, or -1."""
    found = _OPENING.search(text)
    return found.start() if found else -1


def close(text: str, start: int = 0) -> int:
    """The index behind the dictionary that opens at ``start``, or -1 while it is still open."""
    depth, quote, at = 0, "", start
    while found := _QUOTE_OR_BRACE.search(text, at):
        mark, at = found[0], found.end()
        if mark == "\\":
            at += 1
        elif quote:
            quote = "" if mark == quote else quote
        elif mark in "'\"":
            quote = mark
        else:
            depth += 1 if mark == "{" else -1
            if depth == 0:
                return at
    return -1


def flat(text: str) -> Flat:
    """Numbers by name (nested names joined by "/"), and the names of what is None. Texts and lists are left out.

    Raises `Unreadable`.
    """
    if len(text) > LENGTH_MAX:
        raise Unreadable(f"a record of at most {LENGTH_MAX} characters was expected, this one has {len(text)}")
    fast = _flat_fast(text[1:-1])
    return fast if fast is not None else _flat_slow(text)


def _flat_fast(body: str) -> Flat | None:
    values: dict[str, float] = {}
    missing: list[str] = []
    at = 0
    while at < len(body):
        found = _PAIR.match(body, at)
        if found is None:
            return None
        at = found.end()
        name, quoted, bare = found[2], found[4], found[5]
        if bare in ("None", "null"):
            missing.append(name)
            continue
        value = number(bare if quoted is None else quoted)
        if value is None and name == OF_STEPS:
            name, value = "global_step", _before_slash(quoted)
        if value is not None:
            values[name] = value
        elif quoted is None:
            return None
    return values, tuple(missing)


def _before_slash(text: str | None) -> float | None:
    return number((text or "").partition("/")[0])


def _flat_slow(text: str) -> Flat:
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        pairs = list(_pairs(tree, ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"a dictionary of numbers was expected: {_reason(error)}") from None
    values = {name: value for name, value in pairs if isinstance(value, float)}
    return values, tuple(name for name, value in pairs if value is None)


def _pairs(node: ast.expr, prefix: str) -> Iterator[tuple[str, float | None]]:
    if not isinstance(node, ast.Dict):
        raise Unreadable("it is no dictionary")
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant):
            raise Unreadable("its keys are no names")
        name = f"{prefix}{key.value!s}"
        if isinstance(value, ast.Dict):
            yield from _pairs(value, f"{name}/")
        elif name == OF_STEPS and isinstance(value, ast.Constant):
            step = _before_slash(str(value.value))
            yield from (("global_step", step),) if step is not None else ()
        else:
            yield from ((name, found) for found in _value(value))


def _value(node: ast.expr) -> tuple[float | None, ...]:
    """The number or None that a node spells; nothing for a text or a list."""
    if isinstance(node, ast.Call) and node.args:
        return _value(node.args[0])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        sign = -1.0 if isinstance(node.op, ast.USub) else 1.0
        return tuple(found if found is None else sign * found for found in _value(node.operand))
    if isinstance(node, ast.Name):
        return (_NAMES[node.id],) if node.id in _NAMES else ()
    return _constant(node.value) if isinstance(node, ast.Constant) else ()


def _constant(value: object) -> tuple[float | None, ...]:
    if value is None:
        return (None,)
    if isinstance(value, str):
        spelt = number(value)
        return () if spelt is None else (spelt,)
    try:
        return (float(value),) if isinstance(value, (bool, int, float)) else ()
    except OverflowError:  # a whole number beyond all doubles
        return ()


def _reason(error: Exception) -> str:
    return str(error).partition(" (<unknown>")[0] or type(error).__name__
