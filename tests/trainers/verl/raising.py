"""Makes each hook of ours raise, in every process of a job: loaded after the plug-in, by verl's own variable."""

from __future__ import annotations

import os
from typing import Any

from rlvitals.integrations.verl import session, v0, v1, workers


def _raising(name: str) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        with open(os.environ["RAISING_CALLED"], "a") as lines:
            lines.write(f"{name}\n")
        raise RuntimeError(f"{name}, on purpose")

    return fail


# what the wraps were given by name is looked up when a class is wrapped; the rest when it is called
for _name in ("_metrics", "_step_ends", "_stepped", "_saved", "session_of"):
    setattr(v1, _name, _raising(f"v1.{_name}"))
for _name in ("find_caller",):
    setattr(v0, _name, _raising(f"v0.{_name}"))
for _name in ("_loss_computed", "_step_begins", "_step_done"):
    setattr(workers, _name, _raising(f"workers.{_name}"))
for _name in ("batch", "step_ends", "logged", "obey"):
    setattr(session.Session, _name, _raising(f"session.{_name}"))
