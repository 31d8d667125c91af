"""The one place where our own errors end: nothing of ours ever reaches the training loop.

`kept` wraps a function at the public edge, `Guard` is the same as a context manager, `attempt` calls foreign code
(a tensor's ``__float__``). KeyboardInterrupt and SystemExit always pass; with ``RLVITALS_RAISE=1``, as in tests,
everything does.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from rlvitals import notices

P = ParamSpec("P")
R = TypeVar("R")

errors = 0
"""Errors of ours that were kept from the caller so far in this process."""


def kept(fallback: R) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates a public function: an Exception is counted, told once, and ``fallback`` returned instead."""

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def safe(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                caught(error, function.__qualname__)
                return fallback

        return safe

    return wrap


class Guard:
    """``with Guard("reading the config"): …`` swallows an Exception; ``failed`` then says so."""

    def __init__(self, what: str) -> None:
        self.what, self.failed = what, False

    def __enter__(self) -> Guard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self.failed = True
        caught(error, self.what)
        return True


def attempt(function: Callable[..., R], *args: object) -> R | None:
    """Calls code that is not ours; whatever Exception it raises means "no value"."""
    try:
        return function(*args)
    except Exception:
        return None


def caught(error: Exception, what: str) -> None:
    """Counts and tells of an error once per place and type; raises it again under ``RLVITALS_RAISE=1``."""
    global errors
    errors += 1
    if os.environ.get("RLVITALS_RAISE") == "1":
        raise error
    try:
        notices.once(
            f"guard:{what}:{type(error).__name__}",
            f"{what} failed: {type(error).__name__}: {error} (training goes on; RLVITALS_DEBUG=1 shows where)",
            error if os.environ.get("RLVITALS_DEBUG") == "1" else None,
        )
    except Exception:
        errors += 1


def outcome(function: Callable[..., R], *args: object) -> tuple[R | None, str]:
    """Calls code that is not ours: its value and "", or None and the error in one line."""
    try:
        return function(*args), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {str(error).strip()}".partition("\n")[0]
