from __future__ import annotations

from rlvitals.contract.alert import AlertState
from rlvitals.contract.incident import lanes
from rlvitals_dashboard.swimlane import words_of
from tests.monitor.planted import an_alert


def test_a_lane_says_in_words_what_its_bars_show() -> None:
    over = an_alert(fired_step=120, state=AlertState.RESOLVED, resolved_step=1500)
    again = an_alert(id="a2", since_step=2000, fired_step=2003)
    assert [words_of(lane) for lane in lanes([over])] == [
        "Warning: kl_pull_dominates from step 120, until step 1,500"
    ]
    assert [words_of(lane) for lane in lanes([over, again])] == [
        "Warning: kl_pull_dominates from step 120, 2 times, goes on"
    ]


def test_an_alert_whose_end_has_no_step_is_over_all_the_same() -> None:
    over = an_alert(fired_step=120, state=AlertState.RESOLVED)
    assert [words_of(lane) for lane in lanes([over])] == ["Warning: kl_pull_dominates from step 120, over"]
