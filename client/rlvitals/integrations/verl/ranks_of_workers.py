"""Functions that verl carries out on every rank of its workers; each answers with one number, NaN for "not there".

verl's workers run ``function(worker, data)`` with a shard of a DataProto (``execute_with_func_generator``, in all
releases): the number asked for travels in its column, the answer comes back in the same one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

ARGUMENT = "value"


def on_each_rank(group: Any, function: Callable[[Any, Any], Any], argument: float = math.nan) -> list[float]:
    """The ranks' answers, in order. Blocks until all have answered; raises what verl raises."""
    import torch
    from verl import DataProto

    asked = torch.full((int(group.world_size), 1), argument, dtype=torch.float64)
    answers = group.execute_with_func_generator(function, DataProto.from_dict({ARGUMENT: asked}))
    found: list[float] = answers.batch[ARGUMENT].reshape(-1).tolist()
    return found


def read_kl(worker: Any, data: Any) -> Any:
    """The coefficient of the KL term in this rank's loss."""
    return _answer(data, _read_kl(worker))


def set_kl(worker: Any, data: Any) -> Any:
    """Sets the coefficient of the KL term in this rank's loss, and reads it back."""
    for config in _loss_configs(worker):
        _assign(config, "kl_loss_coef", _argument(data))
    return _answer(data, _read_kl(worker))


def read_rate(worker: Any, data: Any) -> Any:
    """This rank's learning rate."""
    return _answer(data, _read_rate(worker))


def scale_rate(worker: Any, data: Any) -> Any:
    """Scales this rank's learning rate and its schedule, and reads it back."""
    from rlvitals.integrations.steering import scale_learning_rate

    optimizer, schedule = _optimizer(worker)
    if hasattr(optimizer, "param_groups") and hasattr(schedule, "base_lrs"):
        scale_learning_rate(optimizer, schedule, _argument(data))
    return _answer(data, _read_rate(worker))


def _read_kl(worker: Any) -> float:
    values = {float(config.kl_loss_coef) for config in _loss_configs(worker)}
    return values.pop() if len(values) == 1 else math.nan


def _loss_configs(worker: Any) -> Iterator[Any]:
    """The configurations that this rank's loss reads: the actor's own up to 0.7, those bound to the loss since."""
    actor = getattr(worker, "actor", None)
    seen: set[int] = set()
    for config in (getattr(actor, "config", None), *_bound(getattr(actor, "loss_fn", None)), *_bound_own(worker)):
        if config is not None and hasattr(config, "kl_loss_coef") and id(config) not in seen:
            seen.add(id(config))
            yield config


def _bound_own(worker: Any) -> Iterator[Any]:
    return _bound(getattr(worker, "loss_fn", None))


def _bound(loss: Any) -> Iterator[Any]:
    """``config`` of a ``functools.partial``, and of those inside it."""
    while loss is not None and hasattr(loss, "keywords"):
        yield loss.keywords.get("config")
        loss = loss.func


def _assign(config: Any, name: str, value: float) -> None:
    """A frozen dataclass since 0.6, whose own assignment raises; a tree of OmegaConf before."""
    if hasattr(type(config), "__dataclass_fields__"):
        object.__setattr__(config, name, value)
    else:
        setattr(config, name, value)


def _read_rate(worker: Any) -> float:
    optimizer, schedule = _optimizer(worker)
    groups = getattr(optimizer, "param_groups", None)
    return float(groups[0]["lr"]) if groups and hasattr(schedule, "base_lrs") else math.nan


def _optimizer(worker: Any) -> tuple[Any, Any]:
    """The actor's optimizer and its schedule; of the engine since 0.8, where it is one that torch made."""
    if getattr(worker, "actor_optimizer", None) is not None:
        return worker.actor_optimizer, getattr(worker, "actor_lr_scheduler", None)
    engine = getattr(getattr(worker, "actor", None), "engine", None)
    return getattr(engine, "optimizer", None), getattr(engine, "lr_scheduler", None)


def _argument(data: Any) -> float:
    return float(data.batch[ARGUMENT].reshape(-1)[0])


def _answer(data: Any, value: float | None) -> Any:
    import torch

    rows = len(data.batch[ARGUMENT])
    found = math.nan if value is None else value
    return type(data).from_dict({ARGUMENT: torch.full((rows, 1), found, dtype=torch.float64)})
