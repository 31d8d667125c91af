"""What the checks need to know of a model: embedding rows and stop ids, without loading a weight."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlvitals.preflight.file_kind import read_regular
from rlvitals.preflight.header import find_rows

ROWS_MAX = 1 << 24
"""No vocabulary comes near; what says more is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """``rows`` are rows of the input embedding, from ``rows_from``; ``head_rows`` of an output head of its own.

    ``config_rows`` is ``vocab_size`` of the config, ``eos`` its ``eos_token_id`` as a tuple (None: not set).
    """

    name: str
    rows: int | None = None
    rows_from: str = ""
    head_rows: int | None = None
    config_rows: int | None = None
    eos: tuple[int, ...] | None = None
    pad: int | None = None
    encoder_decoder: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationFacts:
    """``eos`` is every ``eos_token_id``; None where the config does not set it. ``suppressed`` are ids that the
    sampler never draws."""

    name: str
    eos: tuple[int, ...] | None = None
    pad: int | None = None
    suppressed: frozenset[int] = frozenset()


def read_model(given: Any) -> ModelFacts:
    """Reads a live model, a config (object or mapping), a folder, a ``.safetensors`` or ``config.json`` file, or
    the number of rows itself. Raises TypeError for anything else, OSError or ValueError for an unreadable file."""
    facts = _read(given)
    if facts.rows is not None and not 0 < facts.rows <= ROWS_MAX:
        raise ValueError(f"{facts.rows:,} embedding rows ({facts.rows_from}): expected 1 to {ROWS_MAX:,}")
    return facts


def _read(given: Any) -> ModelFacts:
    if _one(given) is not None:
        return ModelFacts(name="rows", rows=given, rows_from="the number of rows given")
    if isinstance(given, str | Path):
        return _of_path(Path(given))
    if hasattr(given, "get_input_embeddings"):
        return _of_live(given)
    if isinstance(given, Mapping) or hasattr(given, "to_dict"):
        return _of_config(_mapping(given), "model config")
    raise TypeError(f"model: expected a model, a config, a folder, a file or a number of rows, got {type(given)}")


def read_generation(given: Any, name: str = "generation config") -> GenerationFacts:
    """Reads a generation config: object, mapping, ``generation_config.json`` or the folder that holds it."""
    if isinstance(given, str | Path):
        path = Path(given)
        return read_generation(_json(path / "generation_config.json" if path.is_dir() else path), path.name)
    if not isinstance(given, Mapping) and not hasattr(given, "to_dict"):
        raise TypeError(f"generation_config: expected a config object, a mapping or a file, got {type(given)}")
    values = _mapping(given)
    return GenerationFacts(
        name=name,
        eos=ids_of(values.get("eos_token_id")),
        pad=_one(values.get("pad_token_id")),
        suppressed=frozenset(ids_of(values.get("suppress_tokens")) or ()),
    )


def ids_of(value: Any) -> tuple[int, ...] | None:
    """``eos_token_id`` is an id, a list of ids, or None. Raises ValueError for anything else, NaN included."""
    if value is None:
        return None
    ids = tuple(value) if isinstance(value, list | tuple) else (value,)
    if any(_one(one) is None for one in ids):
        raise ValueError(f"expected an id or a list of ids, got {value!r}")
    return ids


def _of_live(model: Any) -> ModelFacts:
    facts = _of_config(_mapping(getattr(model, "config", {})), "model")
    rows = _height(model.get_input_embeddings())
    head = _height(model.get_output_embeddings()) if hasattr(model, "get_output_embeddings") else None
    return _with_rows(facts, rows, head, "model.get_input_embeddings().weight")


def _height(layer: Any) -> int | None:
    # ZeRO-3 leaves an empty tensor behind and keeps the true shape beside it
    weight = getattr(layer, "weight", None)
    shape = getattr(weight, "ds_shape", None) or getattr(weight, "shape", None)
    return int(shape[0]) if shape is not None and len(shape) and shape[0] else None


def _of_path(path: Path) -> ModelFacts:
    if path.suffix == ".safetensors":
        rows, head = find_rows(path)
        return _with_rows(ModelFacts(name=path.name), rows, head, path.name)
    config = path / "config.json" if path.is_dir() else path
    facts = (
        _of_config(_json(config), config.name) if config.exists() or path.is_file() else ModelFacts(name=str(path))
    )
    if path.is_dir():
        rows, head = find_rows(path)
        facts = _with_rows(facts, rows, head, "the safetensors header")
    if facts.rows is None:
        raise ValueError(f"{path} holds neither a config.json with vocab_size nor a safetensors embedding")
    return facts


def _with_rows(facts: ModelFacts, rows: int | None, head: int | None, source: str) -> ModelFacts:
    if rows is None:
        return facts
    return replace(facts, rows=rows, rows_from=source, head_rows=head)


def _of_config(values: Mapping[str, Any], name: str) -> ModelFacts:
    # a multimodal config keeps the rows in its text part, the ids on top or there
    inner = _mapping(values["text_config"]) if values.get("text_config") is not None else {}
    rows = _one(_given("vocab_size", inner, values))
    return ModelFacts(
        name=name,
        rows=rows,
        rows_from="vocab_size of the model config" if rows is not None else "",
        config_rows=rows,
        eos=ids_of(_given("eos_token_id", values, inner)),
        pad=_one(_given("pad_token_id", values, inner)),
        encoder_decoder=bool(values.get("is_encoder_decoder")),
    )


def _given(key: str, *places: Mapping[str, Any]) -> Any:
    return next((place[key] for place in places if place.get(key) is not None), None)


def _mapping(given: Any) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    values: Mapping[str, Any] = given.to_dict() if hasattr(given, "to_dict") else vars(given)
    return values


def _one(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _json(path: Path) -> Mapping[str, Any]:
    read = json.loads(read_regular(path))
    if not isinstance(read, dict):
        raise ValueError(f"{path} holds no JSON object")
    return read
