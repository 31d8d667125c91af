"""Good documents, damaged: what a torn write, a careless writer or an enemy makes of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

HURTS_MAX = 6
TOKENS = (
    b"NaN", b"Infinity", b"-Infinity", b"null", b"1e999", b"-0", b"9" * 400, b"\x00", b"\xff\xfe", b"\xed\xa0\x80",
    b"\\ud800", b"[" * 200, b"{\"a\":" * 200, b"\n", b"\r", b"\x1f\x8b", b"'", b'"', b": ", b"\xc2\xb2", b"&a *a",
    b"!!python/object:os.system", b"<<: *a", b"\xe2\x80\xae", b"step", b"2147483648", b"18446744073709551616",
)  # fmt: skip


class Damaged(bytes):
    """Shown in a few words, however long it is."""

    def __repr__(self) -> str:
        return f"{bytes(self[:400])!r} … {len(self)} bytes"


def damaged(seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """One of the seeds with up to `HURTS_MAX` hurts."""
    return st.builds(hurt, st.sampled_from(list(seeds)), st.sampled_from(list(seeds)), st.integers(0, 2**62))


def hurt(body: bytes, other: bytes, number: int) -> Damaged:
    """The same for the same ``number``."""
    chance = random.Random(number)
    for _ in range(chance.randint(0, HURTS_MAX)):
        body = chance.choice(_HURTS)(body, other, chance)
    return Damaged(body)


Hurt = Callable[[bytes, bytes, random.Random], bytes]


def _flip(body: bytes, _other: bytes, chance: random.Random) -> bytes:
    if not body:
        return body
    at = chance.randrange(len(body))
    return body[:at] + bytes([body[at] ^ (1 << chance.randrange(8))]) + body[at + 1 :]


def _cut(body: bytes, _other: bytes, chance: random.Random) -> bytes:
    return body[: chance.randint(0, len(body))]


def _remove(body: bytes, _other: bytes, chance: random.Random) -> bytes:
    at = chance.randint(0, len(body))
    return body[:at] + body[at + chance.randint(0, 40) :]


def _repeat(body: bytes, _other: bytes, chance: random.Random) -> bytes:
    at = chance.randint(0, len(body))
    return body[:at] + body[max(0, at - chance.randint(0, 200)) : at] + body[at:]


def _insert(body: bytes, _other: bytes, chance: random.Random) -> bytes:
    at = chance.randint(0, len(body))
    return body[:at] + chance.choice(TOKENS) + body[at:]


def _replace(body: bytes, _other: bytes, chance: random.Random) -> bytes:
    at = chance.randint(0, len(body))
    return body[:at] + chance.choice(TOKENS) + body[at + chance.randint(1, 12) :]


def _splice(body: bytes, other: bytes, chance: random.Random) -> bytes:
    return body[: chance.randint(0, len(body))] + other[chance.randint(0, len(other)) :]


_HURTS: tuple[Hurt, ...] = (_flip, _cut, _remove, _repeat, _insert, _replace, _splice)
