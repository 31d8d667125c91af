"""verl: nothing to import and nothing to call, a plug-in that verl, or Ray, loads in every process of a job.

verl's entry points and ``VERL_USE_EXTERNAL_MODULES`` import this package while ``import verl`` is under way: it
installs a finder that patches a few modules after they were executed, and nothing else.
"""

from __future__ import annotations

import sys

from rlvitals.integrations.verl.plugin import install

__all__ = ["install"]

if "verl" in sys.modules:
    install()
