from __future__ import annotations

import pytest

from rlvitals_monitor.access.password import hash_password, is_right, is_weaker, password_fault

GOOD = "correct horse battery staple"


def test_a_password_is_kept_as_a_salted_argon2id_hash() -> None:
    one, other = hash_password(GOOD), hash_password(GOOD)
    assert one.startswith("$argon2id$")
    assert one != other
    assert GOOD not in one
    assert not is_weaker(one)
    assert is_weaker("$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$8b8vJ9Yr0m8vJmFqGn2x7w")


def test_only_the_right_password_is_right() -> None:
    hashed = hash_password(GOOD)
    assert is_right(hashed, GOOD)
    assert not is_right(hashed, GOOD + " ")
    assert not is_right(None, GOOD)
    assert not is_right("nonsense", GOOD)
    assert not is_right(hashed, "x\ud800")


def test_it_is_the_same_however_the_keyboard_composes_its_characters() -> None:
    assert is_right(hash_password("Zwo\u0308lf Boxka\u0308mpfer"), "Zwölf Boxkämpfer")


@pytest.mark.parametrize(
    ("password", "told"),
    [
        ("short", "12 to 200"),
        ("x" * 201, "12 to 200"),
        ("aaaabbbbaaaa", "different"),
        ("my name is ANN!", "without the name"),
        (GOOD, ""),
        ("密码要足够长才可以使用哦", ""),
    ],
)
def test_what_may_not_be_a_password_is_told_why(password: str, told: str) -> None:
    fault = password_fault(password, "Ann")
    assert told in fault
    assert bool(fault) == bool(told)
