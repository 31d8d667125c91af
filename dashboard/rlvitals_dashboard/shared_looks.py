"""What several open pages of a run ask in the same moment is asked once, and all of them are given the answer.

Ten people who watch one run would else have the service do each second ten times the same. Nobody is shown here
what they may not see: a look is named by the version of its run, which the service told the visitor just now, by
the rights that the look itself needs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from rlvitals_dashboard.language import language

T = TypeVar("T")
FRESH_S = 1.0
"""What depends on the time that has passed, such as how long ago a run was heard of, is at most so old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    at: float
    answer: asyncio.Future[Any]


class SharedLooks:
    """Of one event loop or of several; each has its own, since a future belongs to its loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looks: dict[Hashable, _Look] = {}
        self._kept: dict[Hashable, tuple[float, Any]] = {}

    async def ask(self, what: Hashable, question: Callable[[], Awaitable[T]]) -> T:
        """The answer to ``question``, which ``what`` names, of at most `FRESH_S` ago.

        What went wrong for one visitor is not told to another: they ask for themselves.
        """
        now, key = self._clock(), (asyncio.get_running_loop(), language.get(), what)
        known = self._looks.get(key)
        if known is not None and now - known.at <= FRESH_S:
            await asyncio.wait([known.answer])
            if not known.answer.cancelled() and known.answer.exception() is None:
                return known.answer.result()  # type: ignore[no-any-return]
            return await question()
        self._forget(now)
        answer = asyncio.ensure_future(question())
        self._looks[key] = _Look(at=now, answer=answer)
        return await asyncio.shield(answer)

    def keep(self, what: Hashable, answer: Any, for_s: float) -> None:
        """For what is dear to ask and may be seen a little late, by those who may see it."""
        now = self._clock()
        self._kept = {key: kept for key, kept in self._kept.items() if kept[0] > now}
        self._kept[language.get(), what] = now + for_s, answer

    def kept(self, what: Hashable) -> Any | None:
        until, answer = self._kept.get((language.get(), what), (0.0, None))
        return answer if self._clock() < until else None

    def _forget(self, now: float) -> None:
        for key in [key for key, look in self._looks.items() if now - look.at > FRESH_S]:
            del self._looks[key]
