from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals_monitor.rules.value import Unknown, Verdict
from tests.monitor.rules.judging import number, truth

INF, NAN = math.inf, math.nan
A, B, C = "kl.k1 > 0", "kl.k2 > 0", "kl.k3 > 0"
STATES: dict[str, float | None] = {"true": 1.0, "false": -1.0, "missing": None, "nan": NAN}
state = st.sampled_from(sorted(STATES))


def values(**states: str) -> Mapping[str, float]:
    named = {f"kl.{name}": STATES[given_state] for name, given_state in states.items()}
    return {name: value for name, value in named.items() if value is not None}


def plain(verdict: Verdict) -> bool | None:
    return None if isinstance(verdict, Unknown) else verdict


def asked(expr: str, given_values: Mapping[str, float]) -> bool | None:
    return plain(truth(expr, given_values))


@given(state, state)
def test_and_or_and_not_follow_kleene(a: str, b: str) -> None:
    given_values = values(k1=a, k2=b)
    x, y = asked(A, given_values), asked(B, given_values)
    both = False if x is False or y is False else None if x is None or y is None else True
    either = True if x is True or y is True else None if x is None or y is None else False
    assert asked(f"{A} and {B}", given_values) is both
    assert asked(f"{A} or {B}", given_values) is either
    assert asked(f"not ({A})", given_values) is (None if x is None else not x)


@given(state, state, state)
def test_the_laws_of_de_morgan_distribution_and_order_hold(a: str, b: str, c: str) -> None:
    v = values(k1=a, k2=b, k3=c)
    assert asked(f"not ({A} and {B})", v) is asked(f"not ({A}) or not ({B})", v)
    assert asked(f"{A} and ({B} or {C})", v) is asked(f"{A} and {B} or {A} and {C}", v)
    assert asked(f"{A} or {B} or {C}", v) is asked(f"{C} or ({B} or {A})", v)
    assert asked(f"{A} and {B} and {C}", v) is asked(f"{C} and ({B} and {A})", v)
    assert asked(f"not not ({A})", v) is asked(A, v)


@given(state, state, state, st.sampled_from(["true", "false"]))
def test_what_is_known_stays_true_when_more_becomes_known(a: str, b: str, c: str, later: str) -> None:
    expr = f"{A} and not ({B}) or {C}"
    before = asked(expr, values(k1=a, k2=b, k3=c))
    known = {n: later if s in ("missing", "nan") else s for n, s in {"k1": a, "k2": b, "k3": c}.items()}
    if before is not None:
        assert asked(expr, values(**known)) is before


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "==", "!="])
def test_a_comparison_with_nan_or_with_something_missing_is_unknown(sign: str) -> None:
    assert asked(f"kl.k3 {sign} 1", {"kl.k3": NAN}) is None
    assert asked(f"1 {sign} kl.k3", {"kl.k3": NAN}) is None
    assert asked(f"kl.k3 {sign} 1", {}) is None
    assert asked(f"kl.k3 {sign} kl.k1", {"kl.k3": 1.0}) is None


@pytest.mark.parametrize(
    ("expr", "value", "expected"),
    [
        ("kl.k3 > 1e300", INF, True),
        ("kl.k3 < -1e300", -INF, True),
        ("kl.k3 > 0", -INF, False),
        ("kl.k3 == kl.k3", INF, True),
        ("2 * kl.k3 > kl.k3", INF, False),
        ("kl.k3 - kl.k3 == 0", INF, None),
        ("nonfinite(kl.k3)", INF, True),
        ("nonfinite(kl.k3)", -INF, True),
        ("nonfinite(kl.k3)", NAN, True),
        ("nonfinite(kl.k3)", 0.0, False),
        ("isnan(kl.k3)", NAN, True),
        ("isnan(kl.k3)", INF, False),
        ("missing(kl.k3)", NAN, False),
        ("1 / kl.k3 > 0", 0.0, None),
        ("1 / kl.k3 == 0", INF, True),
        ("log(kl.k3) < 0", 0.0, None),
        ("log(kl.k3) < 0", -1.0, None),
        ("sqrt(kl.k3) >= 0", -1.0, None),
        ("max(kl.k3, 3) > 1", NAN, None),
        ("max(3, kl.k3) == 3", -INF, True),
        ("min(kl.k3, 1) == 1", INF, True),
        ("abs(kl.k3) > 1", -INF, True),
        ("default(kl.k1, 7) == 7", 0.0, True),
        ("default(kl.k3, 7) == 7", NAN, None),
        ("0 < kl.k3 < 2", 1.0, True),
        ("0 < kl.k3 < 2", 2.0, False),
        ("kl.k3 * 1e308 * 10 > 0", 1.0, True),
    ],
)
def test_the_four_kinds_of_number(expr: str, value: float, expected: bool | None) -> None:
    assert asked(expr, {"kl.k3": value}) is expected


def test_missing_itself_is_never_unknown() -> None:
    assert asked("missing(kl.k3)", {}) is True
    assert asked("nonfinite(kl.k3)", {}) is None
    assert asked("isnan(kl.k3)", {}) is None


@pytest.mark.parametrize(
    ("expr", "given_values", "reason"),
    [
        ("kl.k3 > 1", {}, "kl.k3 is missing"),
        ("kl.k3 > 1", {"kl.k3": NAN}, "kl.k3 is NaN"),
        ("kl.k3 / kl.k1 > 1", {"kl.k3": 1.0, "kl.k1": 0.0}, "division by zero in (kl.k3 / kl.k1)"),
        ("kl.k3 > config.limit", {"kl.k3": 1.0}, "config.limit is not set to a number"),
        ("log(kl.k3) > 1", {"kl.k3": 0.0}, "the logarithm of a number that is not positive"),
    ],
)
def test_unknown_says_why(expr: str, given_values: Mapping[str, float], reason: str) -> None:
    verdict = truth(expr, given_values)
    assert isinstance(verdict, Unknown)
    assert verdict.reason == reason


def test_settings_are_read_as_numbers_by_their_dotted_name_or_level_by_level() -> None:
    config = {"group_size": 8, "a": {"b": 3, "c": {"d": 4}}, "a.e": 5, "on": True, "word": "8", "huge": 10**400}
    assert number("config.group_size", {}, config) == 8
    assert [number(f"config.a.{name}", {}, config) for name in ("b", "c.d", "e")] == [3, 4, 5]
    assert number("config.on", {}, config) == 1
    for name in ("word", "absent", "a", "a.b.c", "huge"):
        assert isinstance(number(f"config.{name}", {}, config), Unknown), name


def test_a_setting_beside_a_text_is_a_text_and_an_unset_one_equals_no_name() -> None:
    assert asked("config.loss_type == 'grpo'", {}) is False
    assert truth("config.loss_type == 'grpo'", {}, {"loss_type": "grpo"}) is True
    assert truth("config.loss_type != 'cispo'", {}, {"loss_type": 3}) is True


@given(st.floats(), st.floats(), st.floats(), st.sampled_from(["+", "-", "*", "/"]))
def test_no_numbers_make_an_expression_raise(a: float, b: float, c: float, sign: str) -> None:
    given_values = {"kl.k1": a, "kl.k2": b, "kl.k3": c}
    for expr in (
        f"kl.k1 {sign} kl.k2 > kl.k3",
        f"log(kl.k1 {sign} kl.k2) < sqrt(kl.k3)",
        "max(kl.k1, kl.k2) != kl.k3",
    ):
        assert asked(expr, given_values) in (True, False, None)


def test_an_unknown_cannot_be_taken_for_a_truth_by_accident() -> None:
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(Unknown("x"))
