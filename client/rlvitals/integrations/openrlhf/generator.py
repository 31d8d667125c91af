"""Stopping: OpenRLHF has no flag for it, so the generator says that its prompts are used up.

Where sampling runs in an actor of its own (asynchronous training) it is told through Ray's key-value store, leaves
its loop over the episodes at once, and what it has sampled by then is dropped: nothing is trained on after the
stop, and everybody leaves as at the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from rlvitals.guard import Guard, attempt

EXHAUSTED: tuple[list[Any], None, int, bool] = ([], None, 0, True)
"""What ``generate_samples`` returns when there are no more prompts, since 0.9.1."""
NO_GENERATOR = "this release of OpenRLHF keeps its sampling where it cannot be ended between two steps"
DONE = "done"
_LEAVES = "_rlvitals_leaves"


class Stopped(Exception):
    """Raised where a stopped generator would sample, and caught around its ``fit``."""


def introduce(environment: Mapping[str, str], trainer: Any = None) -> None:
    """In the process of an asynchronous trainer: its training actor is watched, its generator listens."""
    with Guard("introducing the asynchronous trainer"):
        for name, value in environment.items():
            os.environ.setdefault(name, value)
        if trainer is None:
            from rlvitals.integrations.openrlhf.entry import patch

            patch(environment)
            return
        trainer.generator_actor.__ray_call__.remote(listen)


def listen(actor: Any) -> None:
    """On the generator's actor: asks before each batch whether the run was stopped."""
    generator = actor.samples_generator
    original = generator.generate_samples

    def generate_samples(*args: Any, **kwargs: Any) -> Any:
        if not stopped():
            return original(*args, **kwargs)
        if getattr(actor, _LEAVES, False):
            raise Stopped
        return EXHAUSTED

    generator.generate_samples = generate_samples


def leaving(actor: Any, fit: Callable[[], Any]) -> Any:
    """Runs a generator's ``fit``; after a stop it would go through all episodes that are left, one by one."""
    setattr(actor, _LEAVES, True)
    try:
        return fit()
    except Stopped:
        actor.rollout_queue.put(DONE, block=True)
        return None


def cannot_stop(trainer: Any) -> str:
    """Why a run of this release cannot be stopped; an empty text where it can."""
    if hasattr(trainer, "rollout_queue"):
        return "" if hasattr(trainer, "rollout_slots") else NO_GENERATOR
    return "" if hasattr(getattr(trainer, "samples_generator", None), "generate_samples") else NO_GENERATOR


def stop(trainer: Any, step: int) -> None:
    """Between two steps: there will be no further one."""
    if not hasattr(trainer, "rollout_queue"):
        trainer.samples_generator.generate_samples = lambda *_, **__: EXHAUSTED
        return
    from ray.experimental.internal_kv import _internal_kv_put

    _internal_kv_put(_key(), b"1")
    trainer.rollout_queue = Drained(trainer.rollout_queue, trainer.rollout_slots, step)


def stopped() -> bool:
    """Whether this job was stopped; False where nobody can say."""

    def ask() -> bool:
        from ray.experimental.internal_kv import _internal_kv_get

        return bool(_internal_kv_get(_key()))

    return bool(attempt(ask))


class Drained:
    """A queue of rollouts of which nothing more is trained on; slots are given back, so that nobody waits."""

    def __init__(self, queue: Any, slots: Any, step: int) -> None:
        self._queue, self._slots, self._step = queue, slots, step

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def get(self, *args: Any, **kwargs: Any) -> Any:
        while True:
            payload = self._queue.get(*args, **kwargs)
            if isinstance(payload, str) and payload == DONE:
                return payload
            self._slots.put(self._step, block=True)


def _key() -> bytes:
    import ray

    return f"rlvitals:stop:{ray.get_runtime_context().get_job_id()}".encode()
