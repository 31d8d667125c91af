"""The part of Jinja that a channel's template may use: it ends, and it stays small, whatever it says.

Names, loops, conditions and filters, but nothing that keeps a value for later (set, with, macro): each line that
doubles what an earlier one kept makes gigabytes of a few hundred characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment, safe_range

TURNS_MAX = 10_000
"""Of all loops of one message."""
LOOPS_DEEP_MAX = 3
SIZE_MAX = 100_000
"""Characters or items of what an operator or a filter makes."""
NUMBER_MAX = 10.0**100
DEPTH_MAX = 60
"""Of expressions within each other: the interpreter has limits that it tells in no helpful words."""

_TURNS, _JOINED = "counted turns", "joined texts"
_TEXT_CALLS = frozenset({"upper", "lower", "title", "capitalize", "strip", "lstrip", "rstrip", "startswith"})
_MORE_CALLS = frozenset({"endswith", "split", "splitlines", "removeprefix", "removesuffix", "find", "count"})
_FILTERS = (
    *("abs", "capitalize", "count", "d", "default", "e", "escape", "first", "float", "int", "last", "length"),
    *("list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse", "select", "selectattr", "sort"),
    *("string", "sum", "title", "trim", "truncate", "unique", "upper", "wordcount"),
)
_ALLOWED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.CondExpr, nodes.Name),
    *(nodes.Const, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.Keyword, nodes.Getattr, nodes.Getitem),
    *(nodes.Slice, nodes.Filter, nodes.Test, nodes.Call, nodes.Compare, nodes.Operand, nodes.BinExpr),
    *(nodes.UnaryExpr, nodes.Concat),
)


class Sandbox(ImmutableSandboxedEnvironment):
    """Raises `SecurityError` for what would grow beyond the bounds, jinja2's other errors for the rest."""

    intercepted_binops = frozenset({"+", "-", "*", "**", "%", "/", "//"})

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True)
        self.globals = {"range": safe_range}
        self.filters = {name: FILTERS[name] for name in _FILTERS}
        self.filters |= {"join": _join, "replace": _replace, "round": _round, _TURNS: _counted, _JOINED: _concat}

    def read(self, source: str) -> Template:
        """Raises `TemplateSyntaxError` with the line, also for what is good Jinja but not allowed here."""
        tree = self.parse(source)
        _check(tree, 0, 0)
        for loop in tree.find_all(nodes.For):
            loop.iter = _filtered(loop.iter, _TURNS)
        for held, name, index, concat in list(_concats(tree)):
            joined = _filtered(nodes.List(concat.nodes, lineno=concat.lineno), _JOINED)
            if index is None:
                setattr(held, name, joined)
            else:
                getattr(held, name)[index] = joined
        tree.set_environment(self)
        return self.from_string(tree)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        are_numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
        if operator == "+" and not are_numbers:
            if len(left) + len(right) > SIZE_MAX:
                raise SecurityError(f"expected no more than {SIZE_MAX} characters or items")
        elif operator == "**" or not are_numbers:
            raise SecurityError(f"expected no {operator} here")
        made = super().call_binop(context, operator, left, right)
        if are_numbers and abs(made) > NUMBER_MAX:
            raise SecurityError(f"expected no number beyond {NUMBER_MAX:g}")
        return made

    def call(self, context: Context, obj: Any, /, *args: Any, **given: Any) -> Any:
        """Only `range`, and what a text does without growing."""
        name = getattr(obj, "__name__", "")
        is_text_call = isinstance(getattr(obj, "__self__", None), str) and name in _TEXT_CALLS | _MORE_CALLS
        if obj is not safe_range and not is_text_call:
            raise SecurityError(f"expected no call of {name or 'this'} here")
        return super().call(context, obj, *args, **given)


def _check(node: nodes.Node, loops: int, depth: int) -> None:
    """Raises `TemplateSyntaxError`."""
    if not isinstance(node, _ALLOWED) or (isinstance(node, nodes.For) and node.recursive):
        word = type(node).__name__.lower()
        raise TemplateSyntaxError(f"expected texts, if, for and filters only, got {word}", node.lineno)
    loops += isinstance(node, nodes.For)
    if loops > LOOPS_DEEP_MAX:
        raise TemplateSyntaxError(f"expected at most {LOOPS_DEEP_MAX} loops in each other", node.lineno)
    if depth > DEPTH_MAX:
        raise TemplateSyntaxError(f"expected at most {DEPTH_MAX} expressions in each other", node.lineno)
    for child in node.iter_child_nodes():
        _check(child, loops, depth + 1)


def _concats(node: nodes.Node) -> Iterator[tuple[nodes.Node, str, int | None, nodes.Concat]]:
    """Each ``~`` with the place that holds it, the outer ones last: by then the inner ones are in place."""
    for name, held in node.iter_fields():
        for index, child in enumerate(held) if isinstance(held, list) else [(None, held)]:
            if isinstance(child, nodes.Node):
                yield from _concats(child)
            if isinstance(child, nodes.Concat):
                yield node, name, index, child


def _filtered(value: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(value, name, [], [], None, None, lineno=value.lineno)


@pass_context
def _counted(context: Context, items: Iterable[Any]) -> Iterator[Any]:
    """What a loop goes over, with each turn counted in the message's own list of one number."""
    left = context["_turns"]
    for item in items:
        left[0] -= 1
        if left[0] < 0:
            raise SecurityError(f"expected at most {TURNS_MAX} turns of all loops")
        yield item


def turns() -> dict[str, object]:
    """What the values of a template must have in them, anew for each message."""
    return {"_turns": [TURNS_MAX]}


def _concat(parts: list[Any]) -> str:
    return _bounded([str(part) for part in parts], "")


def _join(items: Iterable[Any], d: str = "", attribute: str | None = None) -> str:
    found = islice(items, SIZE_MAX)
    texts = (item if attribute is None else item[attribute] for item in found)
    return _bounded([str(text) for text in texts], str(d))


def _bounded(texts: list[str], between: str) -> str:
    if sum(map(len, texts)) + len(between) * len(texts) > SIZE_MAX:
        raise SecurityError(f"expected no more than {SIZE_MAX} characters")
    return between.join(texts)


def _replace(text: Any, old: str, new: str) -> str:
    whole = str(text)
    if len(whole) + whole.count(str(old)) * len(str(new)) > SIZE_MAX:
        raise SecurityError(f"expected no more than {SIZE_MAX} characters")
    return whole.replace(str(old), str(new))


def _round(value: Any, precision: int = 0) -> float:
    return round(float(value), precision)
