"""A sum per token id, mergeable: which single id owns most of a quantity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rlvitals.contract import codec

IDS_ON_THE_WIRE = 4096
DENSE_UP_TO = 1 << 22

Ids = npt.NDArray[np.int64]
Amounts = npt.NDArray[np.float64]


def _no_ids() -> Ids:
    return np.empty(0, np.int64)


def _no_amounts() -> Amounts:
    return np.empty(0, np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IdSums:
    """Non-negative amounts per id; ``ids`` are sorted and distinct.

    Exact in one process. On the wire only the ``IDS_ON_THE_WIRE`` largest are named; what the others hold
    together is in ``rest``, and no single one of them holds more than ``slack``. The share of the top id is
    then a lower bound, too small by at most ``slack / total``.
    """

    ids: Ids = field(default_factory=_no_ids)
    amounts: Amounts = field(default_factory=_no_amounts)
    rest: float = 0.0
    slack: float = 0.0

    @classmethod
    def of(cls, ids: npt.NDArray[np.integer], amounts: npt.NDArray[np.floating]) -> IdSums:
        """Adds up ``amounts`` by id; both are flat and of one length, any order, repeats allowed."""
        distinct, sums = _by_id(ids.astype(np.int64, copy=False), amounts.astype(np.float64, copy=False))
        return cls(ids=distinct, amounts=sums)

    @classmethod
    def count(cls, ids: Ids, *, below: int | None = None) -> IdSums:
        """How often each id occurs in a flat array; ``below`` where all are known to be in [0, below)."""
        if below is None and ids.size and (int(ids.min()) < 0 or int(ids.max()) >= DENSE_UP_TO):
            return cls.of(ids, np.ones(ids.size))
        return cls.dense(np.bincount(ids).astype(np.float64))

    @classmethod
    def dense(cls, amounts: npt.NDArray[np.floating]) -> IdSums:
        """From an array that is indexed by id; zeros are left out."""
        ids = np.flatnonzero(amounts)
        return cls(ids=ids.astype(np.int64, copy=False), amounts=amounts[ids].astype(np.float64, copy=False))

    def __add__(self, other: IdSums) -> IdSums:
        ids, amounts = _by_id(np.concatenate([self.ids, other.ids]), np.concatenate([self.amounts, other.amounts]))
        return IdSums(ids=ids, amounts=amounts, rest=self.rest + other.rest, slack=self.slack + other.slack)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IdSums):
            return NotImplemented
        return (
            np.array_equal(self.ids, other.ids)
            and np.array_equal(self.amounts, other.amounts)
            and (self.rest, self.slack) == (other.rest, other.slack)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def total(self) -> float:
        return float(self.amounts.sum()) + self.rest

    def top(self) -> tuple[int, float] | None:
        """The id with the largest amount and its share of the total; None where there is nothing to share.

        Ids with an infinite amount share the whole equally; of equals the least id is named.
        """
        if not self.ids.size:
            return None
        best = int(self.amounts.argmax())
        if np.isinf(self.amounts[best]):
            return int(self.ids[best]), 1.0 / int(np.isinf(self.amounts).sum())
        total = self.total
        return (int(self.ids[best]), float(self.amounts[best] / total)) if total > 0 else None

    def truncated(self, keep: int = IDS_ON_THE_WIRE) -> IdSums:
        """At most ``keep`` named ids, the largest; the others go into ``rest``."""
        if self.ids.size <= keep:
            return self
        order = np.lexsort((self.ids, -self.amounts))
        kept, others = np.sort(order[:keep]), self.amounts[order[keep:]]
        return IdSums(
            ids=self.ids[kept],
            amounts=self.amounts[kept],
            rest=self.rest + float(others.sum()),
            slack=self.slack + float(others[0]),
        )

    def to_dict(self) -> dict[str, object]:
        """JSON-safe, bounded by ``IDS_ON_THE_WIRE``."""
        short = self.truncated()
        return {
            "ids": short.ids.tolist(),
            "amounts": [codec.encode_number(x) for x in short.amounts.tolist()],
            "rest": codec.encode_number(short.rest),
            "slack": codec.encode_number(short.slack),
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, object]) -> IdSums:
        wire = codec.decode(_Wire, value)
        if len(wire.ids) != len(wire.amounts):
            raise codec.DecodeError("amounts", f"{len(wire.ids)} numbers, one for each id", len(wire.amounts))
        sums = cls.of(np.asarray(wire.ids, np.int64), np.asarray(wire.amounts, np.float64))
        return cls(ids=sums.ids, amounts=sums.amounts, rest=wire.rest, slack=wire.slack)


class IdAdder:
    """Adds up amounts by id, block after block, in one table that is indexed by id wherever the ids allow it."""

    def __init__(self) -> None:
        self._dense, self._others = _no_amounts(), IdSums()

    def add(self, ids: npt.NDArray[np.integer], amounts: npt.NDArray[np.floating]) -> None:
        """Arguments as `IdSums.of`."""
        if not ids.size:
            return
        if int(ids.min()) < 0 or int(ids.max()) >= DENSE_UP_TO:
            self._others += IdSums.of(ids, amounts)
            return
        counted = np.bincount(ids, weights=amounts, minlength=self._dense.size)
        found: Amounts = counted.astype(np.float64, copy=False)
        found[: self._dense.size] += self._dense
        self._dense = found

    def sums(self) -> IdSums:
        dense = IdSums.dense(self._dense)
        return dense + self._others if self._others.ids.size else dense


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wire:
    ids: tuple[int, ...]
    amounts: tuple[float, ...]
    rest: float
    slack: float


def _by_id(ids: Ids, amounts: Amounts) -> tuple[Ids, Amounts]:
    if not ids.size:
        return _no_ids(), _no_amounts()
    if int(ids.min()) >= 0 and int(ids.max()) < DENSE_UP_TO:
        sums: Amounts = np.bincount(ids, weights=amounts).astype(np.float64, copy=False)
        held = np.flatnonzero(sums)
        return held.astype(np.int64, copy=False), sums[held]
    distinct, where = np.unique(ids, return_inverse=True)
    sums = np.bincount(where, weights=amounts, minlength=distinct.size).astype(np.float64, copy=False)
    held = np.flatnonzero(sums)
    return distinct[held], sums[held]
