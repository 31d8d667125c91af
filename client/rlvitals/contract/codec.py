"""JSON both ways for every contract type, with NaN, +Inf, -Inf and *missing* kept apart.

JSON has no NaN, so a non-finite number is spelt as the string "NaN", "Infinity" or "-Infinity"; null means
missing, and only where the type allows None. Nothing else is ever turned into null.
"""

from __future__ import annotations

import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime, timezone
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast

T = TypeVar("T")

NAN, POS_INF, NEG_INF = "NaN", "Infinity", "-Infinity"
_NON_FINITE = {NAN: math.nan, POS_INF: math.inf, NEG_INF: -math.inf}


class DecodeError(ValueError):
    """A field is not what its type says. ``field`` is its dotted path, ``expected`` says what would do."""

    def __init__(self, field: str, expected: str, got: object) -> None:
        self.field, self.expected = field, expected
        super().__init__(f"{field or 'body'}: expected {expected}, got {_show(got)}")


def encode_number(value: float) -> float | str:
    """A finite number as itself; NaN and infinities as their names."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return NAN
    return POS_INF if value > 0 else NEG_INF


def decode_number(value: object, field: str = "") -> float:
    """The inverse of `encode_number`; booleans, null and other strings are refused."""
    if isinstance(value, bool) or value is None:
        raise DecodeError(field, 'a number or "NaN", "Infinity", "-Infinity"', value)
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            raise DecodeError(field, "a number within the range of a double", value) from None
    if isinstance(value, str) and value in _NON_FINITE:
        return _NON_FINITE[value]
    raise DecodeError(field, 'a number or "NaN", "Infinity", "-Infinity"', value)


def encode(value: object) -> Any:
    """Turns contract types into plain JSON values: dataclass → dict, enum → its value, time → ISO 8601 UTC."""
    if value is None or isinstance(value, (bool, int)):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, float):
        return encode_number(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return value
    if isinstance(value, datetime):
        return _encode_time(value)
    if isinstance(value, Mapping):
        return {str(k.value if isinstance(k, Enum) else k): encode(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [encode(v) for v in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    raise TypeError(f"{type(value).__name__} is no contract type")


def decode(cls: type[T], value: object, field: str = "") -> T:
    """Builds ``cls`` from plain JSON values; raises `DecodeError` naming the field. Unknown fields are ignored."""
    return cast(T, _decoder(cast(Any, cls))(value, field))


def dumps(value: object) -> bytes:
    """`encode`, then compact UTF-8 JSON. Lone surrogates (a broken tokenizer's text) are escaped, not refused."""
    return json.dumps(encode(value), allow_nan=False, separators=(",", ":")).encode("ascii")


def loads(body: bytes | str) -> Any:
    """Parses JSON; the bare words NaN and Infinity of careless writers are read as the numbers that they mean."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DecodeError("", "a JSON document", str(error)) from None


def _encode_time(value: datetime) -> str:
    if value.tzinfo is None:
        raise TypeError("naive datetime: contract times are aware and in UTC")
    return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


_Decoder = Callable[[object, str], object]


@cache
def _decoder(kind: Any) -> _Decoder:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or kind is object:
        return lambda value, field: value
    if origin in (Union, types.UnionType):
        return _optional(kind, args)
    if origin is tuple:
        return _sequence(args[0])
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(args[1])
    if is_dataclass(kind):
        return _record(cast(type, kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _choice(kind)
    scalar = _SCALARS.get(kind)
    if scalar is None:
        raise TypeError(f"the codec has no rule for {kind!r}")
    return scalar


def _optional(kind: Any, args: tuple[Any, ...]) -> _Decoder:
    inner = [a for a in args if a is not type(None)]
    if len(inner) != 1 or len(inner) == len(args):
        raise TypeError(f"the codec has no rule for {kind!r}")
    one = _decoder(inner[0])
    return lambda value, field: None if value is None else one(value, field)


def _sequence(item: Any) -> _Decoder:
    one = _decoder(item)

    def read(value: object, field: str) -> object:
        if not isinstance(value, (list, tuple)):
            raise DecodeError(field, "a list", value)
        return tuple(one(v, f"{field}[{i}]") for i, v in enumerate(value))

    return read


def _mapping(item: Any) -> _Decoder:
    one = _decoder(item)

    def read(value: object, field: str) -> object:
        if not isinstance(value, Mapping):
            raise DecodeError(field, "an object", value)
        return {str(k): one(v, f"{field}.{k}") for k, v in value.items()}

    return read


def _record(cls: Any) -> _Decoder:
    hints = typing.get_type_hints(cls)
    required = {f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}
    readers = {f.name: _decoder(hints[f.name]) for f in fields(cls)}

    def read(value: object, field: str) -> object:
        if not isinstance(value, Mapping):
            raise DecodeError(field, f"an object ({cls.__name__})", value)
        prefix = f"{field}." if field else ""
        for name in required:
            if name not in value:
                raise DecodeError(prefix + name, "to be present", None)
        return cls(**{n: r(value[n], prefix + n) for n, r in readers.items() if n in value})

    return read


def _choice(kind: type[Enum]) -> _Decoder:
    def read(value: object, field: str) -> object:
        try:
            return kind(value)
        except ValueError:
            raise DecodeError(field, "one of " + ", ".join(str(m.value) for m in kind), value) from None

    return read


def _text(value: object, field: str) -> object:
    if not isinstance(value, str):
        raise DecodeError(field, "a string", value)
    return value


def _whole(value: object, field: str) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        raise DecodeError(field, "a whole number", value)
    return value


def _truth(value: object, field: str) -> object:
    if not isinstance(value, bool):
        raise DecodeError(field, "true or false", value)
    return value


def _time(value: object, field: str) -> object:
    try:
        moment = datetime.fromisoformat(cast(str, value).replace("Z", "+00:00"))
    except (ValueError, AttributeError, TypeError):
        raise DecodeError(field, "an ISO 8601 time with its zone", value) from None
    if moment.tzinfo is None:
        raise DecodeError(field, "an ISO 8601 time with its zone", value)
    return moment.astimezone(timezone.utc)


_SCALARS: dict[Any, _Decoder] = {
    str: _text,
    int: _whole,
    float: decode_number,
    bool: _truth,
    datetime: _time,
}
