"""One text of the data and where it stands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """``role`` is user, assistant, system, tool, "prompt" for a text that goes to the model as it is, or "" for
    any other; ``where`` is file and line, or row and field."""

    text: str
    role: str = ""
    where: str = ""
