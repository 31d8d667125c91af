"""What a preflight is asked to look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Progress = Callable[[int, "int | None"], None]
"""Called with the bytes (or rows) read so far and, where known, their total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is to be checked, as it was given: live objects, names or paths. None is not given.

    ``tokenizer``: a tokenizer object, a folder, a file. ``model``: a model, a config (object or mapping), a
    folder, a ``.safetensors`` file, or the number of embedding rows. ``generation_config``: object, mapping or
    file. ``data``: paths or rows. ``trainer_config``: object, mapping or file. ``other_tokenizers``: role
    (reference, reward, rollout) to tokenizer. ``stop_ids``: ids at which the sampler stops besides those of the
    generation config. ``sampler_masks``: whether the sampler masks ids without a token (None: unknown).
    """

    tokenizer: Any = None
    model: Any = None
    generation_config: Any = None
    chat_template: str | None = None
    response_template: str | None = None
    data: Any = None
    trainer_config: Any = None
    other_tokenizers: Mapping[str, Any] = field(default_factory=dict)
    stop_ids: Sequence[int] = ()
    sampler_masks: bool | None = None
    progress: Progress | None = None
