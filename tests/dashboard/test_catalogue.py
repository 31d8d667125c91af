"""What is said in the source, and what the Chinese catalogue knows, are the same."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

import yaml

from rlvitals.contract.alert import LIMITS
from rlvitals.contract.metrics import METRICS
from rlvitals_dashboard.display_choice import BROWSER_PHRASES
from rlvitals_dashboard.language import Language, sentences

PACKAGE = Path(str(files("rlvitals_dashboard")))
SOURCES = sorted(PACKAGE.rglob("*.py"))
CATALOGUES = sorted((PACKAGE / "chinese").glob("*.yaml"))
PLACE = re.compile(r"\{(\w*)")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
SAME_IN_BOTH = {"UTC", "KL", "token"}
SAID_BY = {"t": 0, "phrase": 0, "woven": 0, "counted": 2}
"""Function → which of its arguments is the key."""
WORDS_OF = {"Look": "word", "Place": "title"}
"""Class → the field that is said when it is drawn."""


def keys_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from _keys(node, node.func.id)


def _keys(call: ast.Call, name: str) -> Iterator[str]:
    if name == "plural" and len(call.args) > 1:
        words = [str(arg.value) for arg in call.args[1:] if isinstance(arg, ast.Constant)]
        if words:
            yield f"{{count}} {words[1] if len(words) > 1 else f'{words[0]}s'}"
    if name in SAID_BY and len(call.args) > SAID_BY[name]:
        yield from _literals(call.args[SAID_BY[name]])
    for keyword in call.keywords:
        if WORDS_OF.get(name) == keyword.arg:
            yield from _literals(keyword.value)


def _literals(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield node.value
    if isinstance(node, ast.IfExp):
        yield from (*_literals(node.body), *_literals(node.orelse))


@cache
def said() -> dict[str, str]:
    """Key → the file that says it."""
    found = {metric.meaning: "the registry of metrics" for metric in METRICS}
    found |= dict.fromkeys(LIMITS.values(), "the contract of alerts")
    return found | {key: path.name for path in SOURCES for key in keys_of(ast.parse(path.read_text("utf-8")))}


def test_each_sentence_of_the_source_is_in_the_catalogue() -> None:
    known = sentences(Language.CHINESE)
    assert {key: where for key, where in said().items() if key not in known} == {}


def test_no_sentence_of_the_catalogue_is_one_that_nobody_says() -> None:
    assert sorted(sentences(Language.CHINESE).keys() - said().keys()) == []


def test_both_sentences_have_the_same_places() -> None:
    odd = {
        english: chinese
        for english, chinese in sentences(Language.CHINESE).items()
        if sorted(set(PLACE.findall(english))) != sorted(set(PLACE.findall(chinese)))
    }
    assert odd == {}


def test_a_chinese_sentence_is_in_chinese() -> None:
    odd = {
        english: chinese
        for english, chinese in sentences(Language.CHINESE).items()
        if re.search("[A-Za-z]{2}", PLACE.sub("", chinese))
        and not CHINESE.search(chinese)
        and chinese not in SAME_IN_BOTH
    }
    assert odd == {}


def test_a_sentence_stands_in_one_catalogue_once() -> None:
    roots = [yaml.compose(path.read_text(encoding="utf-8")) for path in CATALOGUES]
    count = Counter(key.value for root in roots if root is not None for key, _ in root.value)
    assert [key for key, times in count.items() if times > 1] == []


def test_what_the_scripts_say_is_handed_to_them() -> None:
    scripts = [path.read_text(encoding="utf-8") for path in (PACKAGE / "assets").glob("*.js")]
    saying = [script for script in scripts if "vitalsDisplay.say(" in script]
    literals = {key for script in saying for key in re.findall(r'\bsay\("((?:[^"\\]|\\.)*)"', script)}
    assert literals == set(BROWSER_PHRASES)


def test_the_reader_of_the_source_finds_each_way_to_say_something() -> None:
    source = 't("A")\nphrase("B")\nwoven("C {x}", x=1)\ncounted(n, "one D", "{count} D")\nplural(n, "E")\n'
    source += 'plural(n, "person", "people")\nLook(tone="t", mark="m", word="F")\nt("G" if x else "H")\nt(other)\n'
    found = set(keys_of(ast.parse(source)))
    assert found == {"A", "B", "C {x}", "{count} D", "{count} Es", "{count} people", "F", "G", "H"}
