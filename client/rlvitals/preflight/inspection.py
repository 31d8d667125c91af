"""The whole preflight: what was given goes through every stage, and each stage's findings into one report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rlvitals.preflight.finding import Finding, Report
from rlvitals.preflight.inputs import check_run
from rlvitals.preflight.subject import Subject
from rlvitals.preflight.tokenization import check_tokenization

Stage = Callable[[Subject], Iterator[Finding]]
STAGES: tuple[Stage, ...] = (check_tokenization, check_run)
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
    own = getattr(trainer, "generation_config", None)
    parts = {
        "tokenizer": getattr(trainer, "processing_class", None),
        "model": model,
        "chat_template": getattr(trainer, "chat_template", None),
        "generation_config": own if own is not None else getattr(model, "generation_config", None),
        "data": getattr(trainer, "train_dataset", None),
        "trainer_config": getattr(trainer, "args", None),
    }
    return {name: part for name, part in parts.items() if part is not None}
