from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals_monitor.rules.expression import MOST_CHARACTERS, ExpressionError, Node, metrics_of, parse
from rlvitals_monitor.rules.functions import FUNCTIONS, Kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kl.k4 > 1", "expected a known metric, got 'kl.k4'; did you mean 'kl.k"),
        ("kl.k3", "expected a truth (a comparison), got a number: kl.k3"),
        ("kl.k3 + 1", "expected a truth (a comparison), got a number"),
        ("kl.k3 and kl.k1 > 0", "expected a truth (a comparison), got a number: kl.k3"),
        ("(kl.k3 > 1) > 1", "expected a number, got a truth"),
        ("kl.k3 > True", "expected a number, got a truth"),
        ("kl.k3 ** 2 > 1", "expected one of + - * /"),
        ("kl.k3 in kl.k1", "expected one of < <= > >= == !="),
        ("median(kl.k3) > 1", "expected median(metric, n), got median(kl.k3)"),
        ("median(kl.k3, 0) > 1", "expected a whole number of steps from 1 to 500, got 0"),
        ("median(kl.k3, 501) > 1", "expected a whole number of steps from 1 to 500"),
        ("median(kl.k3, 2.5) > 1", "expected a whole number of steps from 1 to 500"),
        ("median(kl.k3, True) > 1", "expected a whole number of steps from 1 to 500"),
        ("median(log(kl.k3), 5) > 1", "expected a metric's name, got log(kl.k3)"),
        ("median(kl.k3, n=5) > 1", "expected median(metric, n)"),
        ("medain(kl.k3, 5) > 1", "did you mean 'median'?"),
        ("__import__('os').system('id') > 0", "expected a function of the language"),
        ("kl.k3.__class__ > 0", "expected a known metric, got 'kl.k3.__class__'"),
        ("(lambda: 1)() > 0", "expected a function of the language"),
        ("[kl.k3][0] > 0", "expected a metric, a number"),
        ("(x := 1) > 0", "expected a metric, a number"),
        ("f'{kl.k3}' == 'a'", "expected a metric, a number"),
        ("kl.k3 > 1e999", "expected a finite number"),
        ("kl.k3 > 1j", "expected a finite number"),
        ("kl.k3 > None", "expected a finite number"),
        ("config.loss_type > 'a'", "expected == or != between texts"),
        ("kl.k3 == 'a'", "expected a text, got a number"),
        ("kl.k3 >", "expected an expression"),
        ("kl.k3 > 1; kl.k1 > 1", "expected an expression"),
        ("kl.k3 > 1\x00", "expected an expression"),
        ("", "expected an expression"),
        ("kl.k3 > 1 or " * 200 + "kl.k3 > 1", f"expected at most {MOST_CHARACTERS} characters"),
        ("-" * 900 + "1 > 0", "expected"),
        ("(" * 250 + "1" + ")" * 250 + " > 0", "expected an expression"),
        ("not " * 100 + "kl.k3 > 1", "nested at most"),
    ],
)
def test_what_is_not_in_the_language_is_refused_with_what_was_expected(text: str, expected: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert expected in str(caught.value)


def test_a_column_points_into_the_expression() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("kl.k3 > 1 and kl.k9 > 2")
    assert caught.value.column == 15


def test_metrics_are_listed_once_in_the_order_of_the_text() -> None:
    node = parse("kl.k3 > 1 and (reward.mean < mean(kl.k3, 5) or missing(gradient.norm))")
    assert metrics_of(node) == ("kl.k3", "reward.mean", "gradient.norm")


def test_own_metrics_are_known_where_they_are_declared() -> None:
    assert metrics_of(parse("my.metric > 1", own_metrics=["my.metric"])) == ("my.metric",)
    with pytest.raises(ExpressionError):
        parse("my.metric > 1")


@pytest.mark.parametrize(
    "text",
    [
        "0 < kl.k3 <= 2",
        "not (kl.k3 > 1 or kl.k1 < -1)",
        "-log(kl.k3) + 2 * max(kl.k1, kl.k2, 3) >= baseline(kl.k3)",
    ],
)
def test_the_canonical_text_means_the_same_and_is_its_own_canonical_text(text: str) -> None:
    node = parse(text)
    assert parse(node.text).text == node.text


def test_every_function_is_documented_with_its_call() -> None:
    assert {name: function.call for name, function in FUNCTIONS.items()}["baseline"] == "baseline(x[, n])"
    assert all(function.meaning.endswith(".") for function in FUNCTIONS.values())


@given(st.text(alphabet="abkl.3()[]{}<>=+-*/,'\"#:@ \n\t\\0123456789efnotrd", max_size=120))
def test_no_text_does_anything_but_parse_or_be_refused(text: str) -> None:
    node = _parsed(text)
    if not isinstance(node, str):
        assert node.kind is Kind.TRUTH
        assert parse(node.text).text == node.text
    else:
        assert "expected" in node


def _parsed(text: str) -> Node | str:
    try:
        return parse(text)
    except ExpressionError as error:
        return error.expected
