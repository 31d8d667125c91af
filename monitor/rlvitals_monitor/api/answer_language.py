"""Answers in the language that is asked for: the rules' own words, reasons and diagnoses, by ``Accept-Language``.

Names, numbers and what people wrote stay as they are, and so do sentences that the catalogue does not know.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from rlvitals.contract.language import preferred
from rlvitals_monitor.incidents import evidence_words
from rlvitals_monitor.notify.language import Language
from rlvitals_monitor.notify.rule_words import translate

WORDS = frozenset(
    {
        "summary",
        "advice",
        "headline",
        "isnt",
        "reason",
        "description",
        "missing_reason",
        "healthy_reason",
        "counted",
        "why",
    }
)
"""Fields of answers that hold sentences of ours."""
EVIDENCE = "evidence"
"""The field that holds a list of what alerts prove."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

spoken: ContextVar[Language] = ContextVar("rlvitals_answer_language", default=Language.ENGLISH)
"""Of the request that is being answered."""

_translated = lru_cache(maxsize=4096)(translate)


class AnswerLanguage:
    """Pure ASGI, so that the context variable reaches whatever answers the request."""

    def __init__(self, app: Asgi) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        accepted = next((value for name, value in scope.get("headers", ()) if name == b"accept-language"), b"")
        if scope["type"] != "http" or not accepted:
            await self._app(scope, receive, send)
            return
        known = [language.value for language in Language]
        token = spoken.set(Language(preferred(accepted.decode("latin-1"), known)))
        try:
            await self._app(scope, receive, send)
        finally:
            spoken.reset(token)


def told(plain: Any) -> Any:
    """An encoded answer with its sentences in the language that was asked for."""
    return plain if spoken.get() is Language.ENGLISH else _in_chinese(plain)


def _in_chinese(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {name: _field(name, value) for name, value in plain.items()}
    return [_in_chinese(one) for one in plain] if isinstance(plain, list) else plain


def _field(name: str, value: Any) -> Any:
    if name in WORDS and isinstance(value, str):
        return _translated(value)
    if name == EVIDENCE and isinstance(value, list):
        return [evidence_words.in_chinese(one) if isinstance(one, str) else _in_chinese(one) for one in value]
    return _in_chinese(value)
