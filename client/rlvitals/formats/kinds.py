"""What the names of a record say of it: whether it is one, of which step, of training or of an evaluation."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from rlvitals.contract.evaluation import is_evaluated
from rlvitals.formats.numbers import whole
from rlvitals.formats.row import RowKind

STEP_NAMES = ("step", "global_step", "train/step", "train/global_step", "training/global_step", "rollout/step")
_METRICS = re.compile(r"loss|reward|kl|grad_norm|entropy|learning_rate|(?:^|/)lr\b|score|advantage|length|runtime")
_LOGGED = re.compile(r"['\"](?:loss|reward|train/|rollout/|policy_loss|grad_norm)")


def is_record(names: Collection[str]) -> bool:
    """A printed configuration is a dictionary of numbers too, but it has no loss and no reward."""
    return "loss" in names or sum(1 for name in names if is_metric(name)) >= 2


def is_metric(name: str) -> bool:
    """Whether a name holds a word of training."""
    return _METRICS.search(name.lower()) is not None


def looks_logged(text: str) -> bool:
    """Whether a text that can't be read was meant as a record."""
    return _LOGGED.search(text) is not None


def own_step(values: Mapping[str, float]) -> int | None:
    """The step that a record holds among its numbers."""
    return next((whole(values[name]) for name in STEP_NAMES if name in values), None)


def kind_of_names(values: Mapping[str, float], kind: RowKind) -> RowKind:
    """An evaluation holds nothing but evaluated numbers; a summary tells how long it all took."""
    if "train_runtime" in values:
        return RowKind.SUMMARY
    if kind is not RowKind.TRAIN or not values:
        return kind
    told = False
    for name in values:
        if is_evaluated(name):
            told = True
        elif name != "epoch" and name not in STEP_NAMES:
            return kind
    return RowKind.EVAL if told else kind
