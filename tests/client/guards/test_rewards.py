"""Garbled completions are scored as garbled, others as the function scores them, and the run is told."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest

from rlvitals import guard, guards
from tests.client.guards.conftest import Taken

SOUND, GARBLED, CUT = "two words", "two \ufffd\ufffd words", "two words\ufffd"


def words(completions: list[str], **_: Any) -> list[float]:
    """A function that garbage poisons: it cannot be read as words."""
    if any("\ufffd" in text.rstrip("\ufffd") for text in completions):
        raise UnicodeError("poisoned")
    return [float(len(text.split())) for text in completions]


@pytest.mark.parametrize(
    ("arguments", "rewards", "replaced"),
    [
        ({"mode": "clean"}, [2.0, 2.0, 1.0], 0),
        ({"mode": "penalise"}, [2.0, 1.0, 1.0], 1),
        ({"mode": "penalise", "penalty": -3.0}, [2.0, -3.0, 1.0], 1),
        ({"mode": "drop"}, [2.0, None, 1.0], 1),
        ({}, [2.0, 1.0, 1.0], 1),
    ],
)
def test_each_mode_and_what_it_says(
    taken: Taken, arguments: dict[str, Any], rewards: list[float | None], replaced: int
) -> None:
    guarded = guards.guard_reward(words, **arguments)
    assert guarded(prompts=["p"] * 3, completions=[SOUND, GARBLED, "one"], completion_ids=None) == rewards
    values = taken().values
    assert values["guard.garbled_rewards"] == 1
    assert values["guard.garbled_share"] == pytest.approx(1 / 3)
    assert values["guard.replaced_rewards"] == replaced


def test_sound_completions_go_through_untouched(taken: Taken) -> None:
    completions, result = [SOUND, CUT], [1.0, 2.0]
    seen: list[Any] = []

    def function(completions: list[str], **columns: Any) -> list[float]:
        seen.append((completions, columns))
        return result

    guarded = guards.guard_reward(function)
    assert guarded(prompts=["a", "b"], completions=completions, completion_ids=[[1], [2]], answer=[3, 4]) is result
    assert seen[0][0] is completions, "a character that the limit cut is no fault"
    assert seen[0][1] == {"prompts": ["a", "b"], "completion_ids": [[1], [2]], "answer": [3, 4]}
    assert taken().values["guard.garbled_share"] == 0.0
    assert guarded.__name__ == "function"


def test_messages_are_read_and_cleaned_as_a_copy() -> None:
    message = {"role": "assistant", "content": GARBLED}
    completions = [[message], [{"role": "assistant", "content": [{"type": "text", "text": "a\x00b"}]}]]
    shown: list[Any] = []

    def function(completions: list[Any], **_: Any) -> list[float]:
        shown.extend(completions)
        return [1.0, 1.0]

    guarded = guards.guard_reward(function, mode="drop")
    assert guarded(prompts=[[{"role": "user", "content": "p"}]] * 2, completions=completions) == [None, None]
    assert shown[0] == [{"role": "assistant", "content": "two  words"}]
    assert shown[1][0]["content"] == [{"type": "text", "text": "ab"}]
    assert message["content"] == GARBLED


def test_what_the_prompt_holds_and_what_is_allowed_is_no_fault() -> None:
    guarded = guards.guard_reward(lambda completions, **_: [5.0] * len(completions), mode="drop")
    assert guarded(prompts=["what is \ufffd?"], completions=[GARBLED]) == [5.0]
    lenient = guards.guard_reward(lambda completions, **_: [5.0], mode="drop", most=2)
    assert lenient(prompts=["p"], completions=[GARBLED]) == [5.0]


def test_ids_tell_what_a_text_hides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoders that drop ill-formed bytes print a sound text."""
    tiny = pytest.importorskip("tests.client.integrations.tiny", reason="NO TOKENIZER: TRL is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tokenizer = tiny._tokenizer()
    ids = tokenizer("é", add_special_tokens=False)["input_ids"]
    assert len(ids) == 2
    sound = tokenizer("abc", add_special_tokens=False)["input_ids"]
    guarded = guards.guard_reward(lambda completions, **_: [5.0] * 3, mode="drop", tokenizer=tokenizer)
    broken = [ids[0], *sound]
    assert guarded(completions=["abc"] * 3, completion_ids=[sound, broken, [*sound, ids[0]]]) == [5.0, None, 5.0]


def test_a_tokenizer_that_cannot_be_read_leaves_it_to_the_text() -> None:
    guarded = guards.guard_reward(lambda completions, **_: [5.0] * 2, mode="drop", tokenizer=object())
    assert guarded(completions=[SOUND, GARBLED], completion_ids=[[1], [2]]) == [5.0, None]


def test_functions_that_are_awaited_stay_so() -> None:
    async def judge(completions: list[str], **_: Any) -> list[float]:
        return [1.0] * len(completions)

    guarded = guards.guard_reward(judge, mode="drop")
    assert asyncio.iscoroutinefunction(guarded)
    assert asyncio.run(guarded(completions=[SOUND, GARBLED])) == [1.0, None]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_the_functions_own_nan_infinities_and_none_pass_and_are_no_penalty(value: float | None) -> None:
    guarded = guards.guard_reward(lambda completions, **_: [value, 1.0, 3.0])
    given = guarded(completions=[SOUND, SOUND, GARBLED])
    assert given[0] is value or math.isnan(given[0])
    assert given[2] == 1.0


def test_a_guard_that_fails_guards_nothing_and_the_function_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    before = guard.errors
    guarded = guards.guard_reward(lambda completions, **_: [5.0])
    assert guarded(completions=5) == [5.0]
    assert guard.errors > before


def test_the_functions_own_error_is_its_own() -> None:
    def wrong(**_: Any) -> list[float]:
        raise KeyError("answer")

    with pytest.raises(KeyError):
        guards.guard_reward(wrong)(completions=[SOUND])


@pytest.mark.parametrize("arguments", [{"mode": "shout"}, {"penalty": math.nan}, {"penalty": math.inf}])
def test_a_wrong_switch_is_refused_at_once(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"shout|penalty"):
        guards.guard_reward(words, **arguments)


def test_a_reward_model_is_no_function() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="reward function"):
        guards.guard_reward(torch.nn.Linear(1, 1))
