from __future__ import annotations

import pytest

from rlvitals.names import NAME_CHARS_MAX, NAMES_MAX, PLANS_MAX, Names


def test_a_name_keeps_its_number() -> None:
    names = Names()
    assert names.admit(["a", "b"]) == (["a", "b"], [])
    assert names.admit(["b", "c"]) == (["c"], [])
    assert names.table == ["a", "b", "c"]


def test_what_is_no_name_is_handed_back() -> None:
    names = Names()
    new, refused = names.admit(["ok", 3, "", "x" * (NAME_CHARS_MAX + 1)])
    assert new == ["ok"]
    assert refused == [3, "", "x" * (NAME_CHARS_MAX + 1)]


def test_the_table_is_bounded() -> None:
    names = Names()
    _, refused = names.admit(f"n{i}" for i in range(NAMES_MAX + 5))
    assert len(names.table) == NAMES_MAX
    assert len(refused) == 5


def test_values_are_put_into_the_order_of_the_bitmap() -> None:
    names = Names()
    names.admit(["a", "b", "c"])
    assert names.make_plan(("a", "c")).order is None
    assert names.make_plan(("c", "a")).order == (1, 0)


def test_packers_are_bounded() -> None:
    names = Names()
    names.admit(f"n{i}" for i in range(PLANS_MAX + 1))
    for i in range(PLANS_MAX + 1):
        names.make_plan((f"n{i}",))
    assert names.plan(("n0",)) is None
    assert names.plan((f"n{PLANS_MAX}",)) is not None


def test_a_client_keeps_no_more_names_than_a_store_takes_of_one_run() -> None:
    points = pytest.importorskip("rlvitals_monitor.store.points", reason="the service is not installed")
    document = pytest.importorskip("rlvitals_monitor.document", reason="the service is not installed")
    assert min(points.METRICS_MAX, document.NAMES_MAX) >= NAMES_MAX
