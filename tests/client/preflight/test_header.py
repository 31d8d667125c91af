"""Embedding rows from safetensors headers."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from rlvitals.preflight.header import find_rows, read_header


def write(path: Path, **rows: int) -> Path:
    """A safetensors file whose tensors (``__`` for a dot) have so many rows."""
    save_file({name.replace("__", "."): torch.zeros(n, 2) for name, n in rows.items()}, path)
    return path


def test_embedding_and_head_are_found_by_their_names(tmp_path: Path) -> None:
    file = write(
        tmp_path / "m.safetensors", model__embed_tokens__weight=9, lm_head__weight=8, model__norm__weight=3
    )
    assert find_rows(file) == (9, 8)


def test_a_tied_head_is_no_tensor_and_other_names_are_none(tmp_path: Path) -> None:
    assert find_rows(write(tmp_path / "a.safetensors", transformer__wte__weight=7)) == (7, None)
    assert find_rows(write(tmp_path / "b.safetensors", visual__patch__weight=7)) == (None, None)


def test_of_shards_only_the_ones_that_the_index_names_are_opened(tmp_path: Path) -> None:
    write(tmp_path / "one.safetensors", model__embed_tokens__weight=5)
    (tmp_path / "two.safetensors").write_bytes(b"never read")
    index = {
        "weight_map": {"model.embed_tokens.weight": "one.safetensors", "model.layer.weight": "two.safetensors"}
    }
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert find_rows(tmp_path) == (5, None)


def test_no_weight_is_read(tmp_path: Path) -> None:
    header = json.dumps(
        {"wte.weight": {"dtype": "F32", "shape": [1 << 40, 1], "data_offsets": [0, 1 << 42]}}
    ).encode()
    (tmp_path / "m.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    assert find_rows(tmp_path / "m.safetensors") == (1 << 40, None)


@pytest.mark.parametrize(
    "raw", [b"", b"\x00", b"\xff" * 64, struct.pack("<Q", 4) + b"1234", b"\x02" + bytes(7) + b"[]"]
)
def test_what_is_no_safetensors_file_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "m.safetensors").write_bytes(raw)
    with pytest.raises(ValueError, match="no safetensors file"):
        read_header(tmp_path / "m.safetensors")
