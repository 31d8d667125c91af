"""A trainer's settings, from an object, a file, or a command line, under the names that it was given."""

from __future__ import annotations

import json
import math
import re
import reprlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from rlvitals.guard import outcome
from rlvitals.preflight.command_line import command_words, scalar, words_to_values
from rlvitals.preflight.file_kind import check_regular
from rlvitals.preflight.trainer_keys import DEFAULTS, KEYS, MARKS, Setting, Trainer, changed_default, retired

FILE_BYTES_MAX, DEPTH_MAX, KEYS_MAX, LIST_MAX = 4 << 20, 12, 5000, 64


class ConfigReadError(Exception):
    """A configuration that can't be read. The text says why and what was expected."""


@dataclass(frozen=True, slots=True)
class Found:
    """A setting as it stands: under which key, its value, and whether someone set it."""

    key: str
    value: Any
    given: bool

    def __str__(self) -> str:
        value = self.value if isinstance(self.value, float) else reprlib.repr(self.value).strip("'")
        return f"{self.key} = {value}{'' if self.given else ' (the default)'}"

    @property
    def number(self) -> float | None:
        """The value as a finite number; None for anything else, true and false included."""
        if not isinstance(self.value, (int, float)) or isinstance(self.value, bool) or self.broken:
            return None
        return float(self.value)

    @property
    def broken(self) -> bool:
        """Whether it is NaN, infinite or beyond all doubles, which no setting but a bound may be."""
        if isinstance(self.value, int):
            return abs(self.value) > sys.float_info.max
        return isinstance(self.value, float) and not math.isfinite(self.value)

    @property
    def on(self) -> bool:
        """Whether a switch is on."""
        return self.value is True or str(self.value).lower() in ("true", "1", "yes", "on")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerConfig:
    """Settings by dotted key.

    ``algorithm`` is what a class name says (grpo, rloo, ppo), else empty. ``version`` is the trainer's release and
    ``world_size`` the number of processes, None if unknown. ``unresolved`` keys had a value that only a shell or
    another configuration knows.
    """

    values: Mapping[str, object] = field(default_factory=dict)
    trainer: Trainer = Trainer.UNKNOWN
    algorithm: str = ""
    where: str = ""
    version: tuple[int, ...] | None = None
    world_size: int | None = None
    unresolved: tuple[str, ...] = ()

    def find(self, setting: Setting) -> Found | None:
        """The setting as given, else its default; None where this trainer has no such key or no default."""
        if retired(self.trainer, setting, self.version):
            return None
        names = KEYS.get(self.trainer, {}).get(setting, ())
        for name in names:
            if name in self.values and self.values[name] is not None:
                return Found(name, self.values[name], True)
        if not names or any(name in self.unresolved for name in names):
            return None
        default = changed_default(self.trainer, setting, self.version)
        default = DEFAULTS[self.trainer].get(setting) if default is None else default
        return None if default is None else Found(names[0], default, False)

    def given(self, setting: Setting) -> Found | None:
        found = self.find(setting)
        return found if found is not None and found.given else None

    def of_version(self, version: tuple[int, ...] | None) -> TrainerConfig:
        """The same settings under a release of the trainer, whose defaults may differ."""
        return self if self.version is not None else replace(self, version=version)

    def number(self, setting: Setting) -> float | None:
        found = self.find(setting)
        return found.number if found is not None else None

    def on(self, setting: Setting) -> bool:
        found = self.find(setting)
        return found is not None and found.on

    def at(self, found: Found | None) -> str:
        """Where a setting stands, for the finding."""
        return (
            f"{self.where}: {found.key}"
            if found is not None and self.where
            else (found.key if found else self.where)
        )


def read_config(
    given: Any,
    overrides: Mapping[str, object] | None = None,
    trainer: Trainer | None = None,
    version: tuple[int, ...] | None = None,
    world_size: int | None = None,
) -> TrainerConfig:
    """Reads a config object, mapping, path (YAML, JSON, shell script, text) or list of command-line words.

    ``overrides`` win, as hydra's and a command line's do. Raises ConfigReadError for what can't be read.
    """
    if isinstance(given, TrainerConfig):
        return given
    where, algorithm, plain = "", "", given
    if isinstance(given, (str, Path)):
        where = str(given)
        plain = _read_file(Path(given))
    elif isinstance(given, Sequence):
        plain = dict(words_to_values([str(word) for word in given]))
    else:
        algorithm = type(given).__name__
    values = {**flat(plain), **(overrides or {})}
    unresolved = tuple(sorted(key for key, value in values.items() if _is_unresolved(value)))
    known = {key: value for key, value in values.items() if key not in unresolved}
    guessed = trainer or guess_trainer(values, algorithm)
    return TrainerConfig(
        values=known,
        trainer=guessed,
        algorithm=_algorithm(algorithm, values),
        where=where,
        version=version,
        world_size=world_size,
        unresolved=unresolved,
    )


def pads_itself(given: Any) -> bool:
    """Whether settings are those of a known RL trainer: each of them pads prompts on the left, whatever the
    tokenizer's side is, and masks completions by position."""
    config = outcome(read_config, given)[0] if given is not None else None
    return config is not None and config.trainer is not Trainer.UNKNOWN


def guess_trainer(values: Mapping[str, object], class_name: str = "") -> Trainer:
    """The trainer whose own keys occur most; a class name such as ``GRPOConfig`` decides at once."""
    if re.search(r"(GRPO|RLOO|PPO|OnlineDPO|DPO)(Config|Args|Arguments)$", class_name):
        return Trainer.TRL
    beginnings = {
        ".".join(parts[:n]) for key in values for parts in [key.split(".")] for n in range(1, len(parts) + 1)
    }
    scores = {trainer: len(marks & beginnings) for trainer, marks in MARKS.items()}
    best = max(scores, key=lambda trainer: scores[trainer])
    return best if scores[best] else Trainer.UNKNOWN


def flat(value: object, prefix: str = "", depth: int = 0) -> dict[str, object]:
    """Nested mappings, dataclasses and namespaces as dotted keys with plain values, bounded."""
    found: dict[str, object] = {}
    for name, item in _items(value):
        key = f"{prefix}{name}"
        if len(found) >= KEYS_MAX:
            break
        inner = _items(item) if depth < DEPTH_MAX else []
        if inner:
            found.update(flat(item, f"{key}.", depth + 1))
        elif not isinstance(item, Mapping):
            found[key] = _plain(item)
    return found


def _read_file(path: Path) -> object:
    try:
        check_regular(path)
        if path.stat().st_size > FILE_BYTES_MAX:
            raise ConfigReadError(f"{path}: more than {FILE_BYTES_MAX >> 20} MiB, which is no configuration")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigReadError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigReadError(
            f"{path}: not UTF-8 at byte {error.start}; expected YAML, JSON or a command line"
        ) from error
    suffix = path.suffix.lower()
    if suffix == ".json":
        return _parsed_json(path, text)
    if suffix in (".yaml", ".yml"):
        return _parsed_yaml(path, text)
    return dict(words_to_values(command_words(text)))


def _parsed_json(path: Path, text: str) -> object:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigReadError(f"{path}: not JSON: {error}") from error
    if not isinstance(value, Mapping):
        raise ConfigReadError(f"{path}: expected an object with settings, got a {type(value).__name__}")
    return value


def _parsed_yaml(path: Path, text: str) -> object:
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise ConfigReadError(f"{path}: YAML is read by PyYAML: pip install 'rlvitals[check]'") from error
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        told = " ".join(str(error).split())
        raise ConfigReadError(f"{path}: not YAML: {told[:300]}") from error
    if not isinstance(value, Mapping):
        raise ConfigReadError(f"{path}: expected a mapping with settings, got a {type(value).__name__}")
    return value


def _items(value: object) -> list[tuple[str, object]]:
    if isinstance(value, Mapping):
        return [(str(key), item) for key, item in value.items()]
    if is_dataclass(value) and not isinstance(value, type):
        return [(f.name, getattr(value, f.name, None)) for f in fields(value)]
    if type(value).__name__ in ("Namespace", "SimpleNamespace", "AttrDict", "DotDict"):
        return list(vars(value).items())
    if hasattr(value, "items") and hasattr(value, "keys") and not isinstance(value, type):
        return [(str(key), item) for key, item in value.items()]
    return []


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (list, tuple)):
        # flat and short: a list in YAML may hold itself a thousand times
        return [item if isinstance(item, (bool, int, float, str)) else "…" for item in value[:LIST_MAX]]
    return scalar(value) if isinstance(value, str) and not value.startswith("$") else value


def _is_unresolved(value: object) -> bool:
    return isinstance(value, str) and ("$" in value or value == "???")


def _algorithm(class_name: str, values: Mapping[str, object]) -> str:
    for word in ("RLOO", "GRPO", "PPO", "OnlineDPO"):
        if class_name.startswith(word):
            return word.lower()
    return "rloo" if "rloo_k" in values else ""
