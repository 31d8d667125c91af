"""Whatever a trainer holds (tensor on any device, array, list with None) as a NumPy array on the host.

Ragged tensors become rows padded with 0 (see `nested`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rlvitals.probes.arguments import check_ids

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def is_tensor(value: object) -> bool:
    """Without importing torch: a process that has a tensor has loaded it."""
    return hasattr(value, "detach") and hasattr(value, "device")


def floats(value: Any) -> Floats:
    """Doubles; None becomes NaN. A tensor is detached and copied to the host (this waits for a GPU)."""
    if is_tensor(value):
        # through torch's double: NumPy has no bfloat16
        tensor: Floats = _dense(value).double().cpu().numpy()
        return tensor
    return np.asarray(value, np.float64)


def whole(value: Any, name: str = "ids") -> Whole:
    """64-bit integers; no copy where they already are and lie on the host.

    Raises `DtypeError` for anything else, since a float may have become another id; ``name`` is what it says.
    """
    if is_tensor(value):
        check_ids(name, value)
        tensor: Whole = _dense(value).cpu().long().numpy()
        return tensor
    array = np.asarray(value)
    if array.size or hasattr(value, "dtype"):
        check_ids(name, array)
    return array.astype(np.int64, copy=False)


def flags(value: Any) -> Flags:
    """Booleans; a mask of 0 and 1 of any dtype will do."""
    if is_tensor(value):
        tensor: Flags = (_dense(value) != 0).cpu().numpy()
        return tensor
    array: Flags = np.asarray(value) != 0
    return array


def _dense(tensor: Any) -> Any:
    if not tensor.is_nested:
        return tensor.detach()
    from rlvitals.probes.nested import dense

    return dense(values=tensor)[0]
