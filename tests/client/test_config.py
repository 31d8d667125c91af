from __future__ import annotations

import math
import time
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.config import ALL_CHARS_MAX, REMOVED, VALUES_MAX, clean, is_secret
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


SECRET = "q7Zs0-verysecret-9x"
SECRET_NAMES = (
    *("api_key", "token", "HF_TOKEN", "password", "WANDB_API_KEY", "wandb_key", "hub_token", "clientSecret"),
    *("openai_key", "AWS_SECRET_ACCESS_KEY", "webhook_url", "sentry_dsn", "proxy-authorization", "ssh_key"),
)
PLAIN_NAMES = ("beta", "lr", "max_tokens", "pad_token", "model", "prompt_key", "reward_fn_key", "env", "args")
hidden = st.one_of(
    st.sampled_from(SECRET_NAMES).map(lambda name: {name: SECRET}),
    st.sampled_from(SECRET_NAMES).map(lambda name: {name: {"nested": [SECRET]}}),
    st.sampled_from(SECRET_NAMES).map(lambda name: f"{name}={SECRET}"),
    st.sampled_from(SECRET_NAMES).map(lambda name: f"python train.py --{name} {SECRET} --lr 1"),
    st.sampled_from(SECRET_NAMES).map(lambda name: f"--{name}={SECRET}"),
    st.sampled_from(SECRET_NAMES).map(lambda name: ["train", f"--{name}", SECRET, "--lr", "1"]),
    st.sampled_from(SECRET_NAMES).map(lambda name: f"{{'{name}': '{SECRET}', 'lr': 1}}"),
    st.sampled_from(SECRET_NAMES).map(lambda name: SimpleNamespace(**{name.replace("-", "_"): SECRET})),
    st.just(f"https://me:{SECRET}@host/path"),
    st.just(f"https://host/path?token={SECRET}&x=1"),
    st.just(f"https://host/blob?sig={SECRET}"),
    st.just(f"https://hooks.slack.com/services/T0/B0/{SECRET}"),
    st.just(f"Authorization: Bearer {SECRET}"),
    st.just(f"{SECRET}".join(("https://", "@o1.ingest.example"))),
)
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
configs = st.recursive(
    hidden | plain,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from(PLAIN_NAMES), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(PLAIN_NAMES), configs, min_size=1, max_size=4))
def test_no_secret_leaves_a_configuration_however_deep_it_lies(config: dict[str, object]) -> None:
    told = codec.dumps(clean(config)).decode("ascii")
    assert SECRET not in told


@given(st.integers(1, 40))
def test_a_secret_below_the_depth_that_is_kept_is_not_told_as_text(depth: int) -> None:
    config: object = {"api_key": SECRET, "kept": 1}
    for _ in range(depth):
        config = {"inner": config}
    assert SECRET not in str(clean(config))


@pytest.mark.parametrize(
    "name", ["prompt_key", "reward_fn_key", "sort_key", "max_prompt_tokens", "monkey", "kl_type"]
)
def test_settings_that_rules_and_people_need_are_kept(name: str) -> None:
    assert clean({name: "value"}) == {name: "value"}
    assert clean({"args": [f"--{name}", "value", f"--{name}=value", f"{name}: value"]}) == {
        "args": [f"--{name}", "value", f"--{name}=value", f"{name}: value"]
    }


def test_a_switch_that_was_given_a_key_is_no_longer_one() -> None:
    assert clean({"use_wandb": "0123456789abcdef0123456789abcdef01234567"}) == {"use_wandb": REMOVED}
    assert clean({"use_wandb": True}) == {"use_wandb": True}
    assert clean({"use_wandb": "True"}) == {"use_wandb": "True"}


def test_a_configuration_is_never_larger_than_the_service_keeps() -> None:
    wide: dict[str, object] = {f"k{i}": [{"a": j} for j in range(900)] for i in range(900)}
    wide["again"] = wide
    began = time.perf_counter()
    told = clean(wide)
    assert time.perf_counter() - began < 30, "bounded work, whatever comes"
    assert codec.dumps(told).count(b":") < 2 * VALUES_MAX
    assert "(too much)" in str(told)


def test_a_text_without_end_costs_little() -> None:
    assert len(str(clean({"text": "a=" * 10_000_000})["text"])) <= 2000


def test_a_configuration_of_ten_megabytes_is_cut_to_what_may_go_along_with_every_batch() -> None:
    huge = {f"part{i}": {f"key{j}" * 99: "日" * 2000 for j in range(900)} for i in range(5)}
    told = clean({"group_size": 8, **huge, "items": ["日" * 2000] * 900, "last": 1})
    assert told["group_size"] == 8
    assert len(codec.dumps(told)) < 8 * ALL_CHARS_MAX
    assert len(clean({"k" * 10_000_000: 1})) == 1


def test_a_value_that_cannot_say_what_it_is_costs_only_itself() -> None:
    class Mute:
        def __str__(self) -> str:
            raise RuntimeError("on purpose")

    assert clean({"a": Mute(), "b": 1}) == {"a": "(Mute)", "b": 1}
