from __future__ import annotations

from rlvitals.contract.alert import Severity
from rlvitals.contract.incident import Axis, axis_of, lanes
from tests.monitor.planted import an_alert


def test_lanes_are_in_the_order_of_onset_and_one_rule_has_one() -> None:
    found = lanes(
        [
            an_alert(id="c", rule="late", since_step=50, fired_step=60),
            an_alert(id="b", rule="early", since_step=30, fired_step=31),
            an_alert(id="a", rule="early", since_step=9, fired_step=10, severity=Severity.CRITICAL),
        ]
    )
    assert [(lane.rule, lane.onset, [a.id for a in lane.alerts]) for lane in found] == [
        ("early", 10, ["a", "b"]),
        ("late", 60, ["c"]),
    ]
    assert found[0].severity is Severity.CRITICAL


def test_the_stronger_comes_first_where_two_begin_together() -> None:
    weak = an_alert(id="a", rule="a", since_step=5, fired_step=5)
    strong = an_alert(id="b", rule="b", since_step=5, fired_step=5, severity=Severity.CRITICAL)
    assert [lane.rule for lane in lanes([weak, strong])] == ["b", "a"]


def test_an_axis_shows_the_onsets_however_long_an_incident_goes_on() -> None:
    begun = [an_alert(since_step=1000, fired_step=1010), an_alert(since_step=1100, fired_step=1130)]
    axis = axis_of(begun, 900_000)
    assert axis.first < 1000
    assert 1130 < axis.last < 1300
    assert 0 < axis.share(1010) < axis.share(1130) < 1


def test_an_axis_ends_with_its_run_and_has_room_for_an_onset_at_its_last_step() -> None:
    axis = axis_of([an_alert(since_step=3, fired_step=3)], 3)
    assert (axis.first, axis.last) == (0, 4)
    assert axis.share(-5) == 0.0
    assert axis.share(10**9) == 1.0
    assert axis_of([], None).last > axis_of([], None).first
    assert Axis(first=7, last=7).share(7) == 0.0
