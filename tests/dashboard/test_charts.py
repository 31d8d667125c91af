from __future__ import annotations

from rlvitals.contract.view import MetricView
from rlvitals_dashboard.charts import Charts, families
from rlvitals_dashboard.figures import Drawing, Span
from rlvitals_dashboard.panels import arrange
from rlvitals_dashboard.theme import LIGHT


def drawn(name: str) -> str:
    view = MetricView(metric=name, points=5, last_value=1.0, missing_reason="")
    charts = Charts(drawing=Drawing(theme=LIGHT, span=Span(first=0, last=9)), series={})
    return str(families(arrange([view], []), charts))


def test_what_a_trainer_says_of_a_reward_function_names_the_function() -> None:
    assert "Of your reward function accuracy." in drawn("rewards/accuracy/mean")


def test_a_name_that_nobody_knows_is_the_users_own() -> None:
    assert "A metric of your own." in drawn("my/score")
    assert "A metric of your own." in drawn("rewards/accuracy")
