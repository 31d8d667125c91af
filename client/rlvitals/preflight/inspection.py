"""The whole preflight: what was given goes through every stage, and each stage's findings into one report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvitals.preflight.finding import Finding, Report

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


Stage = Callable[[Subject], Iterator[Finding]]
STAGES: tuple[Stage, ...] = ()
"""Every stage yields its findings in the order of the checks, and SKIPPED with a reason for what was not given."""


def check(trainer: Any = None, /, **given: Any) -> Report:
    """Checks a trainer's parts (``check(trainer)``), or those given by name: the fields of `Subject`.

    What is given by name wins over the trainer's own. Nothing is downloaded and no weight is loaded. Raises
    TypeError for an unknown name; what can't be read is a finding, never an exception.
    """
    subject = Subject(**{**_parts(trainer), **given})
    return Report.of(finding for stage in STAGES for finding in stage(subject))


def _parts(trainer: Any) -> dict[str, Any]:
    if trainer is None:
        return {}
    model = getattr(trainer, "model", None)
    parts = {
        "tokenizer": getattr(trainer, "processing_class", None),
        "model": model,
        "generation_config": getattr(model, "generation_config", None),
        "data": getattr(trainer, "train_dataset", None),
        "trainer_config": getattr(trainer, "args", None),
    }
    return {name: part for name, part in parts.items() if part is not None}
