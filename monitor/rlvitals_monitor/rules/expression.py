"""From text to our own checked tree. Python's parser reads the text; nothing of it is ever run.

A rule's expression is a comparison, or comparisons joined by ``and``, ``or``, ``not``, over metric names
(``kl.k3``), the run's settings (``config.group_size``), the numbers ``step`` and ``observed``, and the functions
of `functions.FUNCTIONS`. Every node has a type; whatever is not in the language is an `ExpressionError` that says
what was expected at which column.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from rlvitals.contract.metrics import BY_NAME
from rlvitals_monitor.rules.functions import FUNCTIONS, LONGEST_WINDOW, Function, Kind

MOST_CHARACTERS = 1_000
MOST_NODES = 150
MOST_DEPTH = 24

NOW = ("step", "observed")
"""``step`` is the trainer's step number; ``observed`` counts the steps of this attempt seen so far, from 1."""

_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


class ExpressionError(ValueError):
    """``column`` counts from 1 inside the expression; ``expected`` says what would do."""

    def __init__(self, expected: str, column: int) -> None:
        self.expected, self.column = expected, column
        super().__init__(f"column {column}: {expected}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """``text`` is the canonical spelling; two nodes with the same text mean the same."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal(Node):
    value: float | str | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricName(Node):
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigName(Node):
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Now(Node):
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Node):
    """``count`` is the n of a windowed or remembering function."""

    function: Function
    arguments: tuple[Node, ...]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic(Node):
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Negative(Node):
    operand: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Node):
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Not(Node):
    operand: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Junction(Node):
    """``and`` (``every``) or ``or`` of two or more truths."""

    every: bool
    parts: tuple[Node, ...]


def parse(text: str, wanted: Kind = Kind.TRUTH, own_metrics: Collection[str] = ()) -> Node:
    """The checked tree of one expression that gives ``wanted``.

    ``own_metrics`` are names outside of the registry that the rule file declares. Raises `ExpressionError`.
    """
    return _Reader(own_metrics).read(text, wanted)


def children(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Call):
        return node.arguments
    if isinstance(node, (Arithmetic, Comparison)):
        return (node.left, node.right)
    if isinstance(node, (Negative, Not)):
        return (node.operand,)
    return node.parts if isinstance(node, Junction) else ()


def walk(node: Node) -> Iterator[Node]:
    """All nodes, arguments before the calls that take them."""
    for child in children(node):
        yield from walk(child)
    yield node


def metrics_of(node: Node) -> tuple[str, ...]:
    """Names of the metrics read, each once, in the order of the text."""
    return tuple(dict.fromkeys(n.name for n in walk(node) if isinstance(n, MetricName)))


class _Reader:
    def __init__(self, own_metrics: Collection[str]) -> None:
        self._own = own_metrics
        self._nodes = 0
        self._depth = 0

    def read(self, text: str, wanted: Kind) -> Node:
        if len(text) > MOST_CHARACTERS:
            raise ExpressionError(f"expected at most {MOST_CHARACTERS} characters, got {len(text)}", 1)
        node = self._node(_python_tree(" ".join(text.split())))
        return _of_kind(node, wanted, 1)

    def _node(self, at: ast.expr) -> Node:
        self._nodes += 1
        self._depth += 1
        if self._nodes > MOST_NODES or self._depth > MOST_DEPTH:
            limit = f"at most {MOST_NODES} parts, nested at most {MOST_DEPTH} deep"
            raise ExpressionError(f"expected {limit}", _column(at))
        reader = _READERS.get(type(at))
        if reader is None:
            raise ExpressionError(f"expected {_LANGUAGE}, got {_show(at)}", _column(at))
        node = reader(self, at)
        self._depth -= 1
        return node

    def _typed(self, at: ast.expr, wanted: Kind) -> Node:
        return _of_kind(self._node(at), wanted, _column(at))

    def _constant(self, at: ast.Constant) -> Node:
        value = at.value
        if isinstance(value, bool):
            return Literal(kind=Kind.TRUTH, text=repr(value), value=value)
        if isinstance(value, str):
            return Literal(kind=Kind.TEXT, text=repr(value), value=value)
        number = _finite(value)
        if number is None:
            raise ExpressionError(f"expected a finite number, got {_show(at)}", _column(at))
        return Literal(kind=Kind.NUMBER, text=repr(number), value=number)

    def _name(self, at: ast.expr) -> Node:
        name = _dotted(at)
        if name is None:
            raise ExpressionError(f"expected a metric such as kl.k3, got {_show(at)}", _column(at))
        if name in NOW:
            return Now(kind=Kind.NUMBER, text=name, name=name)
        if name.startswith("config."):
            return ConfigName(kind=Kind.NUMBER, text=name, name=name.removeprefix("config."))
        if name in BY_NAME or name in self._own:
            return MetricName(kind=Kind.NUMBER, text=name, name=name)
        known = (*BY_NAME, *self._own, *NOW)
        raise ExpressionError(f"expected a known metric, got {name!r}{nearest(name, known)}", _column(at))

    def _call(self, at: ast.Call) -> Node:
        name = at.func.id if isinstance(at.func, ast.Name) else ast.unparse(at.func)
        function = FUNCTIONS.get(name)
        if function is None:
            hint = nearest(name, FUNCTIONS)
            raise ExpressionError(f"expected a function of the language, got {name!r}{hint}", _column(at))
        if at.keywords or not _fits(function, len(at.args)):
            raise ExpressionError(f"expected {function.call}, got {_show(at)}", _column(at))
        count, arguments = function.usual, []
        for position, argument in enumerate(at.args):
            kind = function.takes[min(position, len(function.takes) - 1)]
            if kind is Kind.COUNT:
                count = _count(argument)
            else:
                arguments.append(self._argument(argument, kind))
        shown = [a.text for a in arguments] + ([str(count)] if Kind.COUNT in function.takes else [])
        text = f"{name}({', '.join(shown)})"
        return Call(kind=function.gives, text=text, function=function, arguments=tuple(arguments), count=count)

    def _argument(self, at: ast.expr, kind: Kind) -> Node:
        if kind is not Kind.METRIC:
            return self._typed(at, kind)
        node = self._node(at)
        if not isinstance(node, MetricName):
            raise ExpressionError(f"expected {kind.value}, got {_show(at)}", _column(at))
        return node

    def _arithmetic(self, at: ast.BinOp) -> Node:
        operator = _OPERATORS.get(type(at.op))
        if operator is None:
            raise ExpressionError(f"expected one of + - * /, got {_show(at)}", _column(at))
        left, right = self._typed(at.left, Kind.NUMBER), self._typed(at.right, Kind.NUMBER)
        text = f"({left.text} {operator} {right.text})"
        return Arithmetic(kind=Kind.NUMBER, text=text, operator=operator, left=left, right=right)

    def _unary(self, at: ast.UnaryOp) -> Node:
        if isinstance(at.op, ast.Not):
            truth = self._typed(at.operand, Kind.TRUTH)
            return Not(kind=Kind.TRUTH, text=f"not {truth.text}", operand=truth)
        if not isinstance(at.op, (ast.USub, ast.UAdd)):
            raise ExpressionError(f"expected - or not, got {_show(at)}", _column(at))
        number = self._typed(at.operand, Kind.NUMBER)
        if isinstance(at.op, ast.UAdd):
            return number
        return Negative(kind=Kind.NUMBER, text=f"-{number.text}", operand=number)

    def _compare(self, at: ast.Compare) -> Node:
        sides = [at.left, *at.comparators]
        parts = tuple(
            self._pair(left, operator, right)
            for left, operator, right in zip(sides, at.ops, sides[1:], strict=False)
        )
        return parts[0] if len(parts) == 1 else _junction(True, parts)

    def _pair(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Node:
        sign = _COMPARISONS.get(type(operator))
        if sign is None:
            raise ExpressionError("expected one of < <= > >= == !=", _column(left))
        a, b = self._node(left), self._node(right)
        wanted = Kind.NUMBER
        if Kind.TEXT in (a.kind, b.kind):
            a, b, wanted = _as_text(a), _as_text(b), Kind.TEXT
            if sign not in ("==", "!="):
                raise ExpressionError("expected == or != between texts", _column(left))
        a, b = _of_kind(a, wanted, _column(left)), _of_kind(b, wanted, _column(right))
        text = f"({a.text} {sign} {b.text})"
        return Comparison(kind=Kind.TRUTH, text=text, operator=sign, left=a, right=b)

    def _boolean(self, at: ast.BoolOp) -> Node:
        return _junction(isinstance(at.op, ast.And), tuple(self._typed(v, Kind.TRUTH) for v in at.values))


_LANGUAGE = "a metric, a number, a comparison, and/or/not or a function"
_READERS: dict[type[ast.expr], Callable[..., Node]] = {
    ast.Constant: _Reader._constant,
    ast.Name: _Reader._name,
    ast.Attribute: _Reader._name,
    ast.Call: _Reader._call,
    ast.BinOp: _Reader._arithmetic,
    ast.UnaryOp: _Reader._unary,
    ast.Compare: _Reader._compare,
    ast.BoolOp: _Reader._boolean,
}


def _python_tree(text: str) -> ast.expr:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text, mode="eval").body
        except SyntaxError as error:
            raise ExpressionError(f"expected an expression: {error.msg}", error.offset or 1) from None
        except (ValueError, RecursionError, MemoryError):
            raise ExpressionError("expected an expression that nests less deep, without null bytes", 1) from None


def _junction(every: bool, parts: tuple[Node, ...]) -> Junction:
    text = "(" + (" and " if every else " or ").join(part.text for part in parts) + ")"
    return Junction(kind=Kind.TRUTH, text=text, every=every, parts=parts)


def _of_kind(node: Node, wanted: Kind, column: int) -> Node:
    if node.kind is not wanted:
        raise ExpressionError(f"expected {wanted.value}, got {node.kind.value}: {node.text}", column)
    return node


def _as_text(node: Node) -> Node:
    # A setting has no type of its own: beside a text it is read as one.
    return ConfigName(kind=Kind.TEXT, text=node.text, name=node.name) if isinstance(node, ConfigName) else node


def _fits(function: Function, count: int) -> bool:
    return function.least <= count and (function.many or count <= len(function.takes))


def _count(at: ast.expr) -> int:
    value = at.value if isinstance(at, ast.Constant) else None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LONGEST_WINDOW:
        raise ExpressionError(f"expected {Kind.COUNT.value}, got {_show(at)}", _column(at))
    return value


def _finite(value: object) -> float | None:
    if not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _dotted(at: ast.expr) -> str | None:
    parts: list[str] = []
    while isinstance(at, ast.Attribute):
        parts.append(at.attr)
        at = at.value
    return ".".join([at.id, *reversed(parts)]) if isinstance(at, ast.Name) else None


def nearest(name: str, known: Collection[str]) -> str:
    """ "; did you mean …?" where one of ``known`` is close, else nothing."""
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _column(at: ast.expr) -> int:
    return at.col_offset + 1


def _show(at: ast.AST) -> str:
    try:
        text = ast.unparse(at)
    except RecursionError:
        return "a very deep expression"
    return text if len(text) <= 60 else text[:57] + "..."
