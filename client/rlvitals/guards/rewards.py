"""A reward function that does not see garbage: garbled completions are scored as what they are."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias

from rlvitals import notices
from rlvitals.guard import Guard
from rlvitals.guards.garble import GarbleReader, clean
from rlvitals.probes.ledger import LEDGER
from rlvitals.probes.tally import Tally

RewardFunction: TypeAlias = Callable[..., Any]


class Mode(str, Enum):
    """``clean`` scores the text without the garbage, ``penalise`` gives a low reward, ``drop`` none (None)."""

    CLEAN = "clean"
    PENALISE = "penalise"
    DROP = "drop"


def guard_reward(
    function: RewardFunction,
    *,
    mode: Mode | str = Mode.PENALISE,
    penalty: float | None = None,
    most: int = 0,
    tokenizer: Any = None,
    embedding_rows: int | None = None,
) -> RewardFunction:
    """``function`` as a reward function that judges garbled completions apart; also for ``async def`` functions.

    It is called like one of TRL's, ``(prompts=…, completions=…, completion_ids=…, **columns)``, completions as
    strings or messages, and returns one reward for each. A completion is garbled where it holds more than ``most``
    faults: with ``tokenizer`` and ids, ill-formed characters and never-trained ids; else replacement and control
    characters in the text. The function itself sees garbled ones cleaned, so that it cannot fail on them, and all
    others as they are. ``penalty`` is the reward in the mode ``penalise``, by default the least that the function
    gave to any completion of the call.

    Raises ValueError for an unknown mode, a penalty that is no number, or a reward model in place of a function.
    """
    chosen = Mode(mode)
    if not callable(function) or hasattr(function, "forward"):
        raise ValueError(f"function: expected a reward function, got {type(function).__name__}")
    if penalty is not None and not math.isfinite(penalty):
        raise ValueError(f"penalty: expected a finite number, got {penalty}")
    reader = GarbleReader(tokenizer, embedding_rows)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def guarded_async(
            prompts: Any = None, completions: Any = None, completion_ids: Any = None, **columns: Any
        ) -> Any:
            garbled, shown = _sorted_out(reader, most, prompts, completions, completion_ids)
            found = await function(prompts=prompts, completions=shown, completion_ids=completion_ids, **columns)
            return _judged(found, garbled, chosen, penalty)

        return guarded_async

    def guarded(prompts: Any = None, completions: Any = None, completion_ids: Any = None, **columns: Any) -> Any:
        garbled, shown = _sorted_out(reader, most, prompts, completions, completion_ids)
        found = function(prompts=prompts, completions=shown, completion_ids=completion_ids, **columns)
        return _judged(found, garbled, chosen, penalty)

    functools.update_wrapper(guarded, function)
    guarded.__name__ = getattr(function, "__name__", type(function).__name__)
    return guarded


def _sorted_out(
    reader: GarbleReader, most: int, prompts: Any, completions: Any, ids: Any
) -> tuple[list[bool], Any]:
    """Which are garbled, and the completions with those cleaned. If that fails nothing is garbled."""
    with Guard("looking for garbled completions"):
        texts = [_written(completion) for completion in completions]
        asked = None if prompts is None else [_written(prompt) for prompt in prompts]
        garbled = [faults > most for faults in reader.faults(texts, ids, asked)]
        if any(garbled):
            notices.once("guard:garbled", "a reward guard has met garbled completions; see guard.garbled_share")
            shown = [_cleaned(c) if bad else c for c, bad in zip(completions, garbled, strict=True)]
            return garbled, shown
        return garbled, completions
    return [], completions


def _judged(rewards: Any, garbled: Sequence[bool], mode: Mode, penalty: float | None) -> Any:
    """The function's own result where nothing is garbled, or where there is not one reward for each."""
    with Guard("judging garbled completions"):
        count = sum(garbled)
        replaced = 0 if mode is Mode.CLEAN else count
        LEDGER.put(
            Tally(counts={"guard.scored": len(garbled), "guard.garbled": count, "guard.replaced": replaced})
        )
        if not replaced or len(rewards) != len(garbled):
            return rewards
        given = list(rewards)
        low = None if mode is Mode.DROP else _least(given) if penalty is None else penalty
        return [low if bad else reward for reward, bad in zip(given, garbled, strict=True)]
    return rewards


def _least(rewards: Sequence[Any]) -> float | None:
    finite = [float(reward) for reward in rewards if reward is not None and math.isfinite(float(reward))]
    return min(finite, default=None)


def _written(said: Any) -> str:
    """The text of a string, a message, a content part, or a list of these."""
    if isinstance(said, str):
        return said
    if isinstance(said, Mapping):
        return _written(said.get("content", said.get("text", "")) or "")
    return "\n".join(map(_written, said)) if isinstance(said, (list, tuple)) else ""


def _cleaned(said: Any) -> Any:
    """A copy of the same form whose texts are clean."""
    if isinstance(said, str):
        return clean(said)
    if isinstance(said, Mapping):
        return {key: _cleaned(value) if key in ("content", "text") else value for key, value in said.items()}
    return [_cleaned(part) for part in said] if isinstance(said, (list, tuple)) else said
