"""``rlvitals control steer`` and ``effect``, as a person at the service's machine types them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rlvitals_monitor.control.command import main
from rlvitals_monitor.store.engine import Store
from tests.monitor.control.live import PULLED, LiveRun

Say = Callable[..., str]


@pytest.fixture
def live(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> LiveRun:
    monkeypatch.setenv("RLVITALS_DATABASE_URL", sqlite_url)
    made = LiveRun(store=Store(sqlite_url), project="math")
    made.rest(PULLED, 2)
    return made


@pytest.fixture
def say(live: LiveRun, capsys: pytest.CaptureFixture[str]) -> Say:
    def run(*words: str, code: int = 0) -> str:
        assert main(list(words)) == code
        told = capsys.readouterr()
        return told.err if code else told.out

    return run


def test_a_policy_is_chosen_shown_and_taken_back(say: Say, live: LiveRun) -> None:
    assert "no KL policy is chosen" in say("steer")
    said = say("steer", "r1", "--policy", "guarded", "--target", "0.3")
    assert "guarded" in said
    assert "(command line)" in said
    assert "target=0.3" in said
    assert "between 0.05 and 0.2" in said
    assert "no step of this attempt" in said
    live.train(PULLED, 1, 2)
    assert "step 2: hold (warm-up): 3 of 50 steps seen" in say("steer", "r1")
    say("steer", "r1", "--off")
    assert "no KL policy steers r1" in say("steer", "r1")


def test_a_projects_choice_is_listed_and_a_run_may_be_left_out_of_it(say: Say) -> None:
    assert "project  math" in say("steer", "--project", "math", "--policy", "gradient-guard")
    assert "gradient-guard" in say("steer", "r1")
    assert "none" in say("steer", "r1", "--policy", "none")
    assert say("steer").count("chosen by") == 2


def test_the_articles_rule_is_never_shown_without_its_warning(say: Say) -> None:
    assert "WARNING: this rule turns the wrong way" in say("steer", "r1", "--policy", "article")
    assert "WARNING: this rule turns the wrong way" in say("steer", "r1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["steer", "r404", "--policy", "guarded"], "there is no run 'r404'"),
        (["steer", "r1", "--off"], "no KL policy was chosen for the run 'r1'"),
        (["steer", "r1", "--policy", "guarded", "--target", "nan"], "target: expected a finite number above 0"),
        (["steer", "r1", "--policy", "guarded", "--factor", "inf"], "factor: expected above 1 and at most 2"),
        (["steer", "r1", "--target", "0.1"], "expected --policy beside --target"),
        (["steer", "--policy", "guarded"], "expected a run's id, or --project"),
        (["steer", "r1", "--project", "math"], "expected a run or --project, not both"),
        (["effect", "nothing"], "there is no command nothing"),
    ],
)
def test_what_cannot_be_done_is_told_and_nothing_is_changed(say: Say, words: list[str], said: str) -> None:
    assert said in say(*words, code=2)
    assert "no KL policy is chosen" in say("steer")


def test_the_effect_of_a_command_is_told_with_its_signals(say: Say, live: LiveRun) -> None:
    live.choose()
    live.rest({**PULLED, "kl.pull_ratio": 1.2}, 46, 2)
    live.train({**PULLED, "kl.pull_ratio": 1.2}, 2, 48)
    live.rest({**PULLED, "kl.pull_ratio": 0.5}, 51, 50)
    said = say("effect", live.commands()[0].id)
    assert said.startswith("helped: ")
    assert "applied at step 50; steps 0 to 100 were looked at" in said
    assert "kl.pull_ratio" in said


def test_a_name_that_is_no_text_does_not_reach_the_terminal(say: Say, live: LiveRun) -> None:
    said = say("steer", "--project", "\x1b[31mred", "--policy", "guarded")
    assert "\x1b" not in said
