"""A YAML document with its line numbers: every reader says file, line and what was expected."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import TypeVar

import yaml

T = TypeVar("T")

MOST_BYTES = 1_000_000


class RuleFileError(ValueError):
    """``problems`` are all that was wrong, each as "file:line: expected …"."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problems))


class Item:
    """One YAML node. A reader that finds something else raises `RuleFileError` with this node's line."""

    def __init__(self, file: str, node: yaml.Node) -> None:
        self.file, self.node = file, node

    @property
    def where(self) -> str:
        return f"{self.file}:{self.node.start_mark.line + 1}"

    def fail(self, expected: str) -> RuleFileError:
        return RuleFileError([f"{self.where}: {expected}"])

    def source(self) -> str:
        """The node as it was written, its first column at the margin."""
        start, end = self.node.start_mark, self.node.end_mark
        if start.buffer is None:
            return ""
        first, *rest = start.buffer[start.pointer : end.pointer].rstrip("\0 \n").split("\n")
        return "\n".join([first, *(line.removeprefix(" " * start.column) for line in rest)])

    def text(self) -> str:
        """A scalar as written; folded text on one line."""
        return " ".join(self.lines().split())

    def lines(self) -> str:
        """A scalar with its line breaks."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.fail(f"expected a text, got {_kind(self.node)}")
        return str(self.node.value)

    def whole(self, low: int, high: int) -> int:
        text = self.text()
        if not text.isdecimal() or len(text) > 9 or not low <= int(text) <= high:
            raise self.fail(f"expected a whole number from {low} to {high}, got {text!r}")
        return int(text)

    def choice(self, kind: Callable[[str], T], allowed: list[str]) -> T:
        text = self.text()
        if text not in allowed:
            raise self.fail(f"expected one of {', '.join(allowed)}, got {text!r}")
        return kind(text)

    def sequence(self) -> list[Item]:
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.fail(f"expected a list, got {_kind(self.node)}")
        return [Item(self.file, node) for node in self.node.value]

    def items(self) -> list[tuple[str, Item]]:
        """A mapping with free keys, each once."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.fail(f"expected a mapping, got {_kind(self.node)}")
        names = [Item(self.file, key).text() for key, _ in self.node.value]
        for name in names:
            if names.count(name) > 1:
                raise self.fail(f"expected {name!r} once, got it twice")
        return [(name, Item(self.file, value)) for name, (_, value) in zip(names, self.node.value, strict=True)]

    def mapping(self, allowed: tuple[str, ...], required: tuple[str, ...] = ()) -> dict[str, Item]:
        """Its entries by key. Unknown, doubled and absent keys are refused."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.fail(f"expected a mapping with {', '.join(allowed)}, got {_kind(self.node)}")
        entries: dict[str, Item] = {}
        for key_node, value_node in self.node.value:
            key = Item(self.file, key_node)
            name = key.text()
            if name not in allowed:
                close = get_close_matches(name, allowed, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise key.fail(f"expected one of {', '.join(allowed)}, got {name!r}{hint}")
            if name in entries:
                raise key.fail(f"expected {name!r} once, got it twice")
            entries[name] = Item(self.file, value_node)
        for name in required:
            if name not in entries:
                raise self.fail(f"expected {name!r} to be present")
        return entries


def read_document(text: str, file: str) -> Item:
    """The root node of one YAML document. Raises `RuleFileError`."""
    if len(text) > MOST_BYTES:
        raise RuleFileError([f"{file}:1: expected at most {MOST_BYTES} characters, got {len(text)}"])
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise RuleFileError([f"{file}:{line}: expected YAML: {error.problem}"]) from None
    except yaml.YAMLError as error:
        raise RuleFileError([f"{file}:1: expected YAML: {error}"]) from None
    except RecursionError:
        raise RuleFileError([f"{file}:1: expected YAML that nests less deep"]) from None
    if node is None:
        raise RuleFileError([f"{file}:1: expected a mapping, got an empty document"])
    return Item(file, node)


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, yaml.SequenceNode) else f"the text {str(node.value)[:60]!r}"
