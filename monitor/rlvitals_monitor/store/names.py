"""Bounds on what a client may call things, and text made safe for both databases.

PostgreSQL refuses U+0000 and neither database can encode a lone surrogate; both come from broken tokenizers, which
is when the text matters. They are escaped visibly (``\\x00``, ``\\ud83d``), never dropped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rlvitals.contract.codec import DecodeError

# Not dots alone: a browser would fold them out of the page's address.
RUN_ID = re.compile(r"(?!\.+$)[A-Za-z0-9._:-]{1,128}")
ATTEMPT_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
WRITER = re.compile(r"[A-Za-z0-9._:/-]{1,64}")
METRIC_CHARS_MAX = 200
PROJECT_CHARS_MAX = 128
JSON_DEPTH_MAX = 32
JSON_ITEMS_MAX = 5_000
CUT = "…"

_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def clean(text: str, limit: int) -> str:
    """``text`` with NUL and lone surrogates escaped, cut to ``limit`` characters with an ellipsis."""
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    if "\x00" in text:
        text = text.replace("\x00", "\\x00")
    return text if len(text) <= limit else text[: limit - 1] + CUT


def check_id(pattern: re.Pattern[str], value: str, field: str) -> None:
    """Raises `DecodeError` for an id that does not match: ids end up in addresses and logs."""
    if pattern.fullmatch(value) is None:
        raise DecodeError(field, f"text matching {pattern.pattern}", value)


def check_project(value: str) -> None:
    if not value or len(value) > PROJECT_CHARS_MAX or _CONTROL.search(value):
        raise DecodeError("run.project", f"1 to {PROJECT_CHARS_MAX} printable characters", value)


def metric_fault(name: str) -> str:
    """Why a metric may not be called so; empty when it may."""
    if not name:
        return "a metric needs a name"
    if len(name) > METRIC_CHARS_MAX:
        return f"a metric's name has at most {METRIC_CHARS_MAX} characters, this has {len(name)}"
    return "a metric's name has no control characters and no lone surrogates" if _CONTROL.search(name) else ""


def clean_json(value: object, *, text_limit: int) -> object:
    """A JSON value with every text cleaned; raises `ValueError` when it is deeper or larger than the bounds."""
    left = [JSON_ITEMS_MAX]
    return _clean_json(value, text_limit, JSON_DEPTH_MAX, left)


def _clean_json(value: object, text_limit: int, depth: int, left: list[int]) -> object:
    left[0] -= 1
    if left[0] < 0:
        raise ValueError(f"at most {JSON_ITEMS_MAX} values are kept")
    if isinstance(value, str):
        return clean(value, text_limit)
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    if depth == 0:
        raise ValueError(f"at most {JSON_DEPTH_MAX} levels are kept")
    if isinstance(value, Mapping):
        return {
            clean(str(key), METRIC_CHARS_MAX): _clean_json(item, text_limit, depth - 1, left)
            for key, item in value.items()
        }
    return [_clean_json(item, text_limit, depth - 1, left) for item in value]
