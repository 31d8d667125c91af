"""Embedding rows from the header of safetensors files: a length, then JSON; no weight is read."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

_EMBEDDING = (
    "embed_tokens.weight",
    "wte.weight",
    "word_embeddings.weight",
    "tok_embeddings.weight",
    "embed_in.weight",
    "embedding.weight",
    "shared.weight",
)
_HEAD = ("lm_head.weight", "embed_out.weight", "output.weight")
_LONGEST = 100 << 20
"""Bytes that the format allows for a header."""


def read_header(path: Path) -> dict[str, Any]:
    """Tensor name to ``{"dtype", "shape", "data_offsets"}``. Raises ValueError for what is no safetensors file."""
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else _LONGEST + 1
        if length > _LONGEST:
            raise ValueError(f"{path.name} is no safetensors file")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError(f"{path.name} is no safetensors file")
    return header


def find_rows(path: Path) -> tuple[int | None, int | None]:
    """Rows of the input embedding and of a separate output head, None where no tensor has such a name.

    ``path`` is a ``.safetensors`` file or a folder with one, or with shards and their index.
    """
    return _rows(path, _EMBEDDING), _rows(path, _HEAD)


def _rows(path: Path, endings: tuple[str, ...]) -> int | None:
    for file in [path] if path.is_file() else _shards(path, endings):
        for name, tensor in read_header(file).items():
            if name.endswith(endings) and len(tensor.get("shape", ())) == 2:
                return int(tensor["shape"][0])
    return None


def _shards(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return sorted(folder.glob("*.safetensors"))
    placed = json.loads(index.read_text(encoding="utf-8")).get("weight_map", {})
    return sorted({folder / file for name, file in placed.items() if name.endswith(endings)})
