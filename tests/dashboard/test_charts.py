from __future__ import annotations

from rlvitals.contract.view import MetricView
from rlvitals_dashboard.charts import Drawing, families
from rlvitals_dashboard.figures import Span
from rlvitals_dashboard.panels import arrange
from rlvitals_dashboard.theme import LIGHT


def drawn(name: str) -> str:
    drawing = Drawing(
        theme=LIGHT,
        span=Span(first=0, last=9),
        series={},
        alerts=(),
        commands=(),
        more=frozenset(),
        closed=frozenset(),
    )
    view = MetricView(metric=name, points=5, last_value=1.0, missing_reason="")
    return str(families(arrange([view], []), drawing))


def test_what_a_trainer_says_of_a_reward_function_names_the_function() -> None:
    assert "Of your reward function accuracy." in drawn("rewards/accuracy/mean")


def test_a_name_that_nobody_knows_is_the_users_own() -> None:
    assert "A metric of your own." in drawn("my/score")
    assert "A metric of your own." in drawn("rewards/accuracy")
