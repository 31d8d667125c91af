"""Whatever is written as a rule file, it is rules or a list of what is wrong with it, each with its place."""

from __future__ import annotations

from importlib.resources import files

import pytest
from hypothesis import strategies as st

from rlvitals_monitor.rules.document import RuleFileError
from rlvitals_monitor.rules.loader import load_text
from tests.fuzz.budget import attack
from tests.fuzz.mutation import damaged

RULE = """
rules:
  - alert: {name}
    severity: warning
    expr: {expression}
    for: 3 steps
    summary: s
"""
PIECES = [
    "kl.k3", "reward.mean", "length.max", "config.kl_coef", "mean(", "std(", "quantile(", "slope(", "last(",
    "abs(", ")", "(", "[10 steps]", "[5m]", "0.5", "1e999", "NaN", "inf", "-", "+", "*", "/", ">", "<", ">=",
    "==", "!=", " and ", " or ", "not ", ",", "$x", "\u202e", "'", '"', "#", "is_nan(", "1_000", "9" * 50,
    "present(", "missing(",
]  # fmt: skip


def shipped() -> list[bytes]:
    folder = files("rlvitals_monitor.rules") / "catalogue"
    return [file.read_bytes() for file in folder.iterdir() if file.name.endswith(".yaml")]


def load(text: str) -> None:
    try:
        load_text(text)
    except RuleFileError as wrong:
        if not all(wrong.problems):
            raise AssertionError("a problem without words") from wrong


def test_damaged_rule_files() -> None:
    seeds = [b"\n".join(whole.split(b"\n")[at : at + 25]) for whole in shipped() for at in range(0, 75, 25)]

    def read(body: bytes) -> None:
        load(body.decode("utf-8", "surrogateescape"))

    attack(damaged([*seeds, b"rules:\n  - alert: x\n", b"off: [a]\n"]), read, name="rule files")


def test_expressions_of_any_pieces() -> None:
    def read(pieces: list[str]) -> None:
        load(RULE.format(name="fuzzed", expression="".join(pieces)))

    attack(st.lists(st.sampled_from(PIECES), max_size=14), read, name="expressions")


@pytest.mark.parametrize(
    "text", ["(" * 5_000, "not " * 5_000 + "kl.k3 > 1", "-" * 5_000 + "1 > 0", "1+" * 5_000 + "1 > 0"]
)
def test_an_expression_nested_without_end_is_refused(text: str) -> None:
    load(RULE.format(name="deep", expression=text))


@pytest.mark.parametrize(
    "text", ["[" * 5_000, "a: " * 50, "{a: " * 3_000, "- " * 3_000, "&a [*a]", "a: &a [*a, *a]"]
)
def test_a_document_nested_without_end_is_refused(text: str) -> None:
    with pytest.raises(RuleFileError):
        load_text(text)
