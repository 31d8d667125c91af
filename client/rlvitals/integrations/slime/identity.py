"""One run of several processes: which run and which attempt they all write to.

The first process of a Ray job that asks puts both into the cluster's own key-value store, under the job's number;
all others read them there. Without Ray, RLVITALS_RUN_ID and RLVITALS_ATTEMPT say it.
"""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass
from typing import Any

from rlvitals import notices
from rlvitals.guard import Guard

ATTEMPT = "RLVITALS_ATTEMPT"
RUN = "RLVITALS_RUN_ID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """``shared`` where the other processes of the job are known to have the same."""

    run: str
    attempt: str
    shared: bool


def agree(args: Any) -> Identity:
    """The same in every process of the job. Never raises."""
    run, attempt = os.environ.get(RUN) or _named(args), os.environ.get(ATTEMPT) or os.urandom(8).hex()
    own = Identity(run=run, attempt=attempt, shared=bool(os.environ.get(RUN) and os.environ.get(ATTEMPT)))
    if own.shared:
        return own
    with Guard("agreeing on the run"):
        return _in_ray(own) or _alone(own)
    return own


def _alone(own: Identity) -> Identity:
    notices.once(
        "slime:identity",
        f"slime's processes could not agree on one run: set {RUN} and {ATTEMPT} for the whole job",
    )
    return own


def _in_ray(own: Identity) -> Identity | None:
    """None where this process belongs to no Ray job."""
    try:
        import ray
        from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_put
    except ImportError:
        return None
    if not ray.is_initialized():
        return None
    key = f"rlvitals:{ray.get_runtime_context().get_job_id()}"
    _internal_kv_put(key, json.dumps([own.run, own.attempt]), overwrite=False)
    run, attempt = json.loads(_internal_kv_get(key))
    return Identity(run=str(run), attempt=str(attempt), shared=True)


def _named(args: Any) -> str:
    """A new name, from what the user calls the experiment."""
    base = next((str(v) for v in (getattr(args, n, None) for n in ("wandb_group", "wandb_project")) if v), "slime")
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", base).strip("-.")[:64] or "slime"
    return f"{slug}-{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(2).hex()}"
