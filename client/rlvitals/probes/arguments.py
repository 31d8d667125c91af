"""Arguments that no probe can measure: told by type and by name, before any work is launched.

The checks look at shapes, devices and dtypes, never at values, so they wait for no GPU and cost a few
microseconds. They need neither numpy nor torch; None stands for an argument that was not given.
"""

from __future__ import annotations

from collections.abc import Collection
from numbers import Real
from typing import Any

Shape = tuple[int, ...]


class ProbeArgumentError(ValueError):
    """Which argument is wrong, what was expected, and what came."""

    def __init__(self, argument: str, expected: str, got: str) -> None:
        super().__init__(argument, expected, got)
        self.argument, self.expected, self.got = argument, expected, got

    def __str__(self) -> str:
        return f"{self.argument}: expected {self.expected}, got {self.got}"


class ShapeError(ProbeArgumentError):
    """A tensor, array or list of another shape than its neighbours need."""


class DeviceError(ProbeArgumentError):
    """Tensors of one call that lie on different devices, or an array among them."""


class DtypeError(ProbeArgumentError, TypeError):
    """Numbers of the wrong kind: ids that are floats, log-probs that are integers."""


class VocabularyError(ProbeArgumentError, TypeError):
    """A tokenizer whose tokens cannot be read."""


def check_tokens(**named: Any) -> None:
    """All of them (B, T), of one shape and on one device."""
    for name, value in named.items():
        if value is not None and len(value.shape) != 2:
            raise ShapeError(name, "(B, T)", told(value))
    check_same_shape(**named)
    check_same_device(**named)


def check_same_shape(**named: Any) -> None:
    """All of the first one's shape."""
    first, shape = "", None
    for name, value in named.items():
        if value is None:
            continue
        if shape is None:
            first, shape = name, value.shape
        elif value.shape != shape:
            raise ShapeError(name, f"{written(shape)} as {first} has", told(value))


def check_same_device(**named: Any) -> None:
    """All where the first one is."""
    first, device = "", None
    for name, value in named.items():
        if value is None:
            continue
        # lists have no device, and NumPy's arrays have one only in its second version
        here = getattr(value, "device", "cpu")
        if device is None:
            first, device = name, here
        elif here != device:
            where = f"{type(value).__name__} on {here}"
            raise DeviceError(name, f"a {_kind(device)} on {device} as {first} is", where)


def check_broadcasts(name: str, value: Any, shape: Shape) -> None:
    """One number, (B,), or whatever broadcasts to (B, T)."""
    given = tuple(value.shape)
    wide = (*given, 1) if len(given) == 1 else given
    if len(wide) > 2 or any(have not in (1, want) for have, want in zip(wide[::-1], shape[::-1], strict=False)):
        raise ShapeError(name, f"({shape[0]},) or what broadcasts to {written(shape)}", told(value))


def check_per_row(name: str, value: Any, shape: Shape) -> None:
    """One number for each of the B rows, or one for each of the (B, T) tokens."""
    if tuple(value.shape) not in (shape[:1], (shape[0], 1), tuple(shape)):
        raise ShapeError(name, f"({shape[0]},) or {written(shape)}", told(value))


def check_chosen(name: str, value: Any, shape: Shape) -> None:
    """The lengths (B,) of completions, whole numbers, or a mask (B, T) of the tokens that the policy chose."""
    if tuple(value.shape) not in (shape[:1], tuple(shape)):
        raise ShapeError(name, f"lengths ({shape[0]},) or a mask {written(shape)}", told(value))
    if len(value.shape) == 1:
        check_ids(name, value)


def check_ids(name: str, value: Any) -> None:
    """Integers; an id that went through floats may be another token's."""
    if value is not None and kind_of(value) != "integer":
        raise DtypeError(name, "integers", str(value.dtype))


def check_floating(**named: Any) -> None:
    """Floating-point numbers; integers in their place are ids or a mask that slipped in."""
    for name, value in named.items():
        if value is not None and kind_of(value) != "float":
            raise DtypeError(name, "floating-point numbers", str(value.dtype))


def check_choice(name: str, value: str, known: Collection[str]) -> None:
    """One of those known."""
    if value not in known:
        raise ProbeArgumentError(name, f"one of {', '.join(known)}", repr(value))


def check_at_least(name: str, value: Any, least: float) -> None:
    """A number that is not below ``least``; NaN is below everything."""
    if not isinstance(value, Real):
        raise DtypeError(name, "a number", type(value).__name__)
    if not float(value) >= least:
        raise ProbeArgumentError(name, f"{least} or more", str(value))


def kind_of(value: Any) -> str:
    """integer, float, or the dtype's own name; of a tensor or an array."""
    dtype = value.dtype
    kind = getattr(dtype, "kind", None)
    if kind is not None:
        return {"i": "integer", "u": "integer", "f": "float"}.get(kind, str(dtype))
    if dtype.is_floating_point:
        return "float"
    return str(dtype) if dtype.is_complex or str(dtype) == "torch.bool" else "integer"


def told(value: Any) -> str:
    """What came, in an error's words."""
    return "a nested tensor" if getattr(value, "is_nested", False) else written(value.shape)


def written(shape: Any) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _kind(device: Any) -> str:
    return "array" if isinstance(device, str) else "tensor"
