"""Token tables kept on disk between runs, by a hash of their tokenizer.

Whatever is wrong with a file (cut short, of another version, of another owner) only means that the table is
built again; a disk that cannot be written is no error.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from rlvitals.probes.decoder import Damage, Decoder, Dropped
from rlvitals.probes.token_codes import DROP, TokenCodes
from rlvitals.probes.utf8 import STRIDE, Maps
from rlvitals.probes.vocabulary import Family

VERSION = 1
"""To be raised whenever the same tokenizer gives another table than before."""

_UNREADABLE = (OSError, ValueError, LookupError, EOFError, zipfile.BadZipFile)

Stored = tuple[Family, TokenCodes, dict[int, bytes], tuple[Decoder, Decoder]]


def cache_folder() -> Path:
    """Where a user's programs keep what they can make again."""
    given = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(given) if given else Path.home() / ".cache") / "rlvitals" / "tokens"


def cache_path(folder: Path, fingerprint: str, rows: int | None) -> Path:
    """The file of a tokenizer with that many embedding rows."""
    key = hashlib.sha256(f"{VERSION} {fingerprint} {rows}".encode()).hexdigest()
    return folder / f"{key[:40]}.npz"


def load(path: Path) -> Stored | None:
    """What `save` wrote; None where there is nothing that can be trusted."""
    with suppress(*_UNREADABLE), _open_own(path) as file, np.load(file, allow_pickle=False) as arrays:
        return _unpacked(arrays)
    return None


def save(
    path: Path, family: Family, codes: TokenCodes, pieces: Mapping[int, bytes], decoders: tuple[Decoder, Decoder]
) -> None:
    """Writes in one step, readable by this user alone; gives up without a word where that cannot be done."""
    arrays: dict[str, Any] = _packed(family, codes, pieces, decoders)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, **arrays)
            os.replace(name, path)
        except OSError:
            os.unlink(name)
            raise


def _open_own(path: Path) -> IO[bytes]:
    """Refuses links, and files that another user may have written."""
    file = os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb")
    status = os.fstat(file.fileno())
    foreign = hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or bool(status.st_mode & 0o022))
    if foreign or not stat.S_ISREG(status.st_mode):
        file.close()
        raise PermissionError(f"{path} is not a file of this user alone")
    return file


def _packed(
    family: Family, codes: TokenCodes, pieces: Mapping[int, bytes], decoders: tuple[Decoder, Decoder]
) -> dict[str, npt.NDArray[Any]]:
    names = [family.name, *(name for d in decoders for name in (d.damage.name, d.special.name, d.unassigned.name))]
    return {
        "names": np.asarray(names),
        "classes": codes.classes,
        "map_of": codes.map_of,
        "spelt": codes.map_of[:0] if codes.spelt is codes.map_of else codes.spelt,
        "special": codes.special,
        "after": codes.maps.after,
        "errors": codes.maps.errors,
        "literals": codes.maps.literals,
        "ids": np.fromiter(pieces, np.int64, len(pieces)),
        "lengths": np.fromiter(map(len, pieces.values()), np.int64, len(pieces)),
        "text": np.frombuffer(b"".join(pieces.values()), np.uint8),
    }


def _unpacked(arrays: Mapping[str, npt.NDArray[Any]]) -> Stored:
    family, *names = arrays["names"].tolist()
    classes, map_of, spelt, special = (arrays[name] for name in ("classes", "map_of", "spelt", "special"))
    spelt = spelt if spelt.size else map_of
    maps = Maps.of_columns(arrays["after"], arrays["errors"], arrays["literals"])
    known = maps.after.size // STRIDE
    if {classes.shape, map_of.shape, spelt.shape, special.shape} != {(classes.size,)}:
        raise ValueError("arrays of different lengths")
    if int(map_of.max()) >= known or int(spelt[spelt != DROP].max(initial=0)) >= known:
        raise ValueError("a map that is not there")
    ends = np.cumsum(arrays["lengths"]).tolist()
    text = arrays["text"].tobytes()
    if not ends or ends[-1] != len(text) or int(arrays["lengths"].min()) < 0:
        raise ValueError("pieces cut short")
    pieces = {i: text[a:b] for i, a, b in zip(arrays["ids"].tolist(), [0, *ends], ends, strict=False)}
    codes = TokenCodes(classes=classes, map_of=map_of, spelt=spelt, special=special.astype(bool), maps=maps)
    keep, skip = names[:3], names[3:]
    return Family[family], codes, pieces, (_decoder(*keep), _decoder(*skip))


def _decoder(damage: str, special: str, unassigned: str) -> Decoder:
    return Decoder(damage=Damage[damage], special=Dropped[special], unassigned=Dropped[unassigned])
