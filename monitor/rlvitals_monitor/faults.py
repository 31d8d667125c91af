"""What a person set wrongly, told in one line with what was expected, instead of a traceback."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

from pydantic import ValidationError
from pydantic_settings import SettingsError
from sqlalchemy.exc import ArgumentError, OperationalError

from rlvitals_monitor.errors import NewerSchema
from rlvitals_monitor.notify.channel import ChannelError
from rlvitals_monitor.rules.document import RuleFileError

P = ParamSpec("P")
Faults = (
    *(ValidationError, SettingsError, ChannelError, RuleFileError),
    *(ArgumentError, OperationalError, NewerSchema, OSError),
)
WRONG_SETTING = 2


def plainly(command: Callable[P, int]) -> Callable[P, int]:
    """Wraps a command: a wrong setting, file or database is told on stderr, and 2 returned."""

    @functools.wraps(command)
    def told(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return command(*args, **kwargs)
        except Faults as error:
            if os.environ.get("RLVITALS_DEBUG") == "1":
                raise
            sys.stderr.write(f"rlvitals: {fault(error)}\n")
            return WRONG_SETTING

    return told


def fault(error: Exception) -> str:
    """The error in words that name the setting and what it may be."""
    if isinstance(error, ValidationError):
        return "\n".join(_setting(dict(one)) for one in error.errors())
    if isinstance(error, ArgumentError):
        return f"RLVITALS_DATABASE_URL: expected sqlite:///… or postgresql+psycopg://…: {error}"
    if isinstance(error, OperationalError):
        return f"the database does not answer: {str(error.orig).strip()}"
    return str(error)


def _setting(one: dict[str, object]) -> str:
    place = one["loc"] if isinstance(one["loc"], tuple) else ()
    if not place:  # of all settings together, whose values include secrets
        return str(one["msg"]).removeprefix("Value error, ")
    name = "RLVITALS_" + ".".join(str(part) for part in place).upper()
    expected = str(one["msg"]).replace("Input should be", "expected", 1)
    return f"{name}: {expected}, got {str(one['input'])[:80]!r}"
