"""What is read of models and generation configs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM

from rlvitals.preflight.model import ids_of, read_generation, read_model
from tests.client.preflight.test_header import write


def _small(**settings: Any) -> Qwen2Config:
    sizes: dict[str, Any] = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
    }
    return Qwen2Config(vocab_size=40, intermediate_size=8, **sizes, **settings)


def test_a_live_model_tells_its_rows_and_not_its_configs() -> None:
    model = Qwen2ForCausalLM(_small(eos_token_id=3))
    model.resize_token_embeddings(50)
    model.config.vocab_size = 40
    facts = read_model(model)
    assert (facts.rows, facts.config_rows, facts.head_rows, facts.eos) == (50, 40, 50, (3,))


def test_rows_that_zero_3_took_away_are_read_from_beside_the_tensor() -> None:
    model = Qwen2ForCausalLM(_small())
    embedding: Any = model.get_input_embeddings().weight
    embedding.data = torch.empty(0)
    embedding.ds_shape = torch.Size([40, 8])
    assert read_model(model).rows == 40


@pytest.mark.parametrize("given", [_small(eos_token_id=[1, 2]), {"vocab_size": 40, "eos_token_id": [1, 2]}])
def test_a_config_is_an_object_or_a_mapping(given: Any) -> None:
    facts = read_model(given)
    assert (facts.rows, facts.eos, facts.rows_from) == (40, (1, 2), "vocab_size of the model config")


def test_the_text_part_of_a_multimodal_config_counts() -> None:
    facts = read_model({"vocab_size": 1, "text_config": {"vocab_size": 40, "eos_token_id": 7}})
    assert (facts.rows, facts.eos) == (40, (7,))
    top = read_model({"eos_token_id": [7, 8], "text_config": {"vocab_size": 40, "eos_token_id": None}})
    assert (top.rows, top.eos) == (40, (7, 8))


def test_a_folder_has_a_config_and_perhaps_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 40, "eos_token_id": 2}))
    assert read_model(tmp_path).rows == 40
    write(tmp_path / "model.safetensors", model__embed_tokens__weight=44)
    facts = read_model(str(tmp_path))
    assert (facts.rows, facts.config_rows, facts.eos) == (44, 40, (2,))
    assert read_model(tmp_path / "config.json").rows == 40
    assert read_model(tmp_path / "model.safetensors").rows == 44


def test_a_number_is_the_rows() -> None:
    assert read_model(151_936).rows == 151_936


@pytest.mark.parametrize("rows", [0, -1, 1 << 40])
def test_rows_that_no_embedding_has_are_refused(rows: int) -> None:
    with pytest.raises(ValueError, match="embedding rows"):
        read_model(rows)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "null", "true", "1.5"])
def test_a_vocab_size_that_is_no_number_of_rows_is_missing_and_an_eos_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(f'{{"vocab_size": {text}}}')
    with pytest.raises(ValueError, match="neither a config"):
        read_model(tmp_path)
    (tmp_path / "generation_config.json").write_text(f'{{"eos_token_id": {text}}}')
    if text == "null":
        assert read_generation(tmp_path).eos is None
    else:
        with pytest.raises(ValueError, match="expected an id or a list of ids"):
            read_generation(tmp_path)


@pytest.mark.parametrize("given", [object(), 1.5, True, math.nan, math.inf, -math.inf, None])
def test_anything_else_is_refused_by_type(given: Any) -> None:
    with pytest.raises(TypeError, match="expected a model"):
        read_model(given)


def test_a_folder_without_both_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="neither a config"):
        read_model(tmp_path)


@pytest.mark.parametrize(("value", "ids"), [(None, None), (3, (3,)), ([3, 4], (3, 4)), ([], ())])
def test_eos_is_missing_one_or_many(value: Any, ids: tuple[int, ...] | None) -> None:
    assert ids_of(value) == ids


def test_a_generation_config_is_an_object_a_mapping_a_file_or_its_folder(tmp_path: Path) -> None:
    given = {"eos_token_id": [3, 4], "pad_token_id": 4, "suppress_tokens": [8, 9]}
    (tmp_path / "generation_config.json").write_text(json.dumps(given))
    made = GenerationConfig(**given)  # type: ignore[no-untyped-call]
    for one in (given, made, tmp_path, tmp_path / "generation_config.json"):
        facts = read_generation(one)
        assert (facts.eos, facts.pad, facts.suppressed) == ((3, 4), 4, frozenset({8, 9}))
    assert read_generation({}).eos is None
