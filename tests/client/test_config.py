from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import pytest

from rlvitals.config import REMOVED, clean, is_secret
from rlvitals.contract import codec


@pytest.mark.parametrize(
    "name",
    [
        "token",
        "hub_token",
        "wandb_key",
        "HF_TOKEN",
        "push_to_hub_token",
        "wandb_api_key",
        "apiKey",
        "openai.api-key",
        "password",
        "db_password",
        "client_secret",
        "secrets",
        "authorization",
        "aws_secret_access_key",
        "private_key",
        "credentials",
    ],
)
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert is_secret(name)
    assert clean({"outer": {name: "v"}}) == {"outer": {name: REMOVED}}


@pytest.mark.parametrize(
    "name",
    ["pad_token", "eos_token", "bos_token_id", "max_tokens", "tokenizer", "token_level", "loss_type", "key_dim"],
)
def test_a_tokenizers_words_are_no_secrets(name: str) -> None:
    assert not is_secret(name)


def test_an_empty_secret_is_shown_as_empty() -> None:
    assert clean({"hub_token": None, "password": ""}) == {"hub_token": None, "password": ""}


class Colour(Enum):
    RED = "red"


@dataclass
class Arguments:
    rate: float
    colour: Colour
    nested: dict[object, object]


def test_anything_becomes_plain_values_that_the_codec_takes() -> None:
    found = clean(Arguments(rate=math.inf, colour=Colour.RED, nested={"path": object, 3: (1, {2})}))
    assert found == {"rate": math.inf, "colour": "red", "nested": {"path": str(object), "3": [1, [2]]}}
    assert codec.loads(codec.dumps(found))["rate"] == "Infinity"


def test_a_plain_object_shows_its_attributes() -> None:
    class Plain:
        def __init__(self) -> None:
            self.beta = 0.1

    assert clean(Plain()) == {"beta": 0.1}


def test_a_config_that_contains_itself_ends() -> None:
    loop: dict[str, object] = {}
    loop["self"] = loop
    assert "self" in clean(loop)
    codec.dumps(clean(loop))


def test_long_things_are_cut() -> None:
    found = clean({"text": "x" * 10_000, "many": list(range(5000))})
    assert len(str(found["text"])) == 2000
    assert len(found["many"]) == 1000  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("postgresql://me:pa55@db/x", f"postgresql://me:{REMOVED}@db/x"),
        ("https://:pa55@proxy:8080", f"https://:{REMOVED}@proxy:8080"),
        ("--token hf_" + "a" * 34 + " --lr 1", f"--token {REMOVED} --lr 1"),
        ("sk-" + "a1" * 20, REMOVED),
        ("AKIA" + "A1" * 8, REMOVED),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE", REMOVED),
    ],
)
def test_a_secret_is_known_by_its_form_in_any_text(text: str, kept: str) -> None:
    assert clean({"args": [text]}) == {"args": [kept]}


@pytest.mark.parametrize(
    "text", ["https://host:8080/a@b", "Qwen/Qwen2.5-0.5B", "hf_model", "sk-learn", "a:b@c", "s3://bucket/path"]
)
def test_a_text_that_only_resembles_a_secret_is_kept(text: str) -> None:
    assert clean({"value": text}) == {"value": text}
