"""A completion spelt from the bytes of its own tokens, so that nothing that a decoder replaced is hidden. Pure.

What a reader can point at is a `Cluster`: as many neighbouring tokens as it takes to end a character.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlvitals.contract.report import TokenDetail
from rlvitals.contract.view import TextView
from rlvitals_dashboard.language import t
from rlvitals_dashboard.words import Piece, pieces

BREAKS = frozenset({"special", "added", "reserved", "unassigned", "out_of_range"})
"""Kinds of ids that end a character as the decoder of a tokenizer does."""
NO_TOKEN = frozenset({"reserved", "unassigned", "out_of_range"})
_ESCAPED = range(0xDC80, 0xDD00)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """``place`` counts the completion's tokens from 0; ``piece`` is None where its bytes were not told."""

    place: int
    token_id: int
    piece: bytes | None
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """``pieces`` are what it shows, of which those with a name should not be overlooked."""

    tokens: tuple[Token, ...]
    pieces: tuple[Piece, ...]

    @property
    def is_odd(self) -> bool:
        return any(piece.name for piece in self.pieces)


def spell(token_ids: Sequence[int], detail: TokenDetail) -> Iterator[Cluster]:
    """All tokens, each in one cluster. Bytes that are no UTF-8 become pieces ``\\xNN`` of their own."""
    run: list[Token] = []
    for place, token_id in enumerate(token_ids):
        told = detail.pieces.get(str(token_id))
        kind = detail.kinds.get(str(token_id), "")
        token = Token(place=place, token_id=token_id, piece=None if told is None else _bytes(told), kind=kind)
        if token.piece is not None and kind not in BREAKS:
            run.append(token)
            continue
        yield from _spelt(run)
        run = []
        yield Cluster(tokens=(token,), pieces=_alone(token))
    yield from _spelt(run)


def plainly(text: TextView) -> str:
    """The whole completion, each bad byte a surrogate for `byte_pieces`; as decoded where no bytes were told."""
    if text.tokens is None or not text.tokens.pieces or not text.token_ids:
        return text.completion
    return "".join(map(_plain, spell(text.token_ids, text.tokens)))


def _plain(cluster: Cluster) -> str:
    told = [token.piece for token in cluster.tokens if token.piece is not None and token.kind not in NO_TOKEN]
    if len(told) < len(cluster.tokens):
        return "".join(piece.shown for piece in cluster.pieces)
    return b"".join(told).decode("utf-8", "surrogateescape")


def _bytes(digits: str) -> bytes | None:
    try:
        return bytes.fromhex(digits)
    except ValueError:
        return None


def _alone(token: Token) -> tuple[Piece, ...]:
    if token.kind in NO_TOKEN:
        kind = token.kind.replace("_", " ")
        return (Piece(shown=f"[{kind} id {token.token_id}]", name=t("{kind}: no text stands for it", kind=kind)),)
    if token.piece is None:
        return (Piece(shown=f"[id {token.token_id}]"),)
    return tuple(byte_pieces(token.piece.decode("utf-8", "surrogateescape")))


def _spelt(run: Sequence[Token]) -> Iterator[Cluster]:
    """``run`` in which each token has bytes."""
    text = b"".join(token.piece or b"" for token in run).decode("utf-8", "surrogateescape")
    waiting, chars, at, end = 0, "", 0, 0
    ends = []
    for token in run:
        end += len(token.piece or b"")
        ends.append(end)
    done = 0
    for char in text:
        chars += char
        at += 1 if ord(char) in _ESCAPED else len(char.encode("utf-8", "surrogatepass"))
        while waiting < len(run) and ends[waiting] <= at:
            waiting += 1
        if waiting > done and ends[waiting - 1] == at:
            yield Cluster(tokens=tuple(run[done:waiting]), pieces=tuple(byte_pieces(chars)))
            done, chars = waiting, ""
    if done < len(run):
        yield Cluster(tokens=tuple(run[done:]), pieces=tuple(byte_pieces(chars)))


def byte_pieces(text: str) -> Iterator[Piece]:
    """`words.pieces` of a text that was decoded with ``surrogateescape``."""
    for piece in pieces(text):
        code = int(piece.name[2:], 16) if piece.name.startswith("U+") else 0
        if code in _ESCAPED:
            byte = f"{code - 0xDC00:02X}"
            yield Piece(shown=f"\\x{byte}", name=t("byte {byte}, part of no character", byte=byte))
        else:
            yield piece
