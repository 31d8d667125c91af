"""RL Vitals: the vital-signs monitor for RL post-training of language models.

``rlvitals.attach(trainer)`` is the one line for a known trainer, ``with rlvitals.run(…) as vitals`` the one block
for a loop of your own; ``rlvitals.init(…)`` gives anything a `Reporter`.
Nothing is loaded before the first of these is used: the service, too, imports `rlvitals.contract` through here.
With it imported, transformers' trainers know ``report_to="rlvitals"``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlvitals import reporting

if TYPE_CHECKING:
    from rlvitals.contract.report import Phase, RunInfo
    from rlvitals.control import Control
    from rlvitals.integrations.loop import Vitals, run
    from rlvitals.integrations.trl.reporting import RLVitalsCallback
    from rlvitals.preflight.inspection import check as preflight
    from rlvitals.reporter import Reporter
    from rlvitals.settings import Mode
    from rlvitals.start import attach, init
    from rlvitals.verdict import ControlLimits

__version__ = "0.1.0"
__all__ = [
    "Control",
    "ControlLimits",
    "Mode",
    "Phase",
    "RLVitalsCallback",
    "Reporter",
    "RunInfo",
    "Vitals",
    "__version__",
    "attach",
    "init",
    "preflight",
    "run",
]

_HOMES = {
    "Control": "rlvitals.control",
    "ControlLimits": "rlvitals.verdict",
    "Mode": "rlvitals.settings",
    "Phase": "rlvitals.contract.report",
    "RLVitalsCallback": "rlvitals.integrations.trl.reporting",
    "Reporter": "rlvitals.reporter",
    "RunInfo": "rlvitals.contract.report",
    "Vitals": "rlvitals.integrations.loop",
    "attach": "rlvitals.start",
    "init": "rlvitals.start",
    "preflight": "rlvitals.preflight",
    "run": "rlvitals.integrations.loop",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    home = importlib.import_module(_HOMES[name])
    value: object = home if name == "preflight" else getattr(home, name)  # that module is itself the call
    globals()[name] = value
    return value


reporting.register()
