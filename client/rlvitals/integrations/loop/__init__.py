"""Any loop of your own: ``with rlvitals.run(…) as vitals``, told in a few calls a step.

The loop tells what it has anyway (ids, log-probs, rewards, the loss); whatever the probes can compute from that is
reported, the rest is missing with the reason. Nothing here raises, waits for a device in the hot path, draws from
a global random state or keeps a graph alive, so training is bit for bit the same with us and without.
"""

from __future__ import annotations

from rlvitals.integrations.loop.start import run
from rlvitals.integrations.loop.vitals import Vitals

__all__ = ["Vitals", "run"]
