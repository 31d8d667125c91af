"""``report_to="rlvitals"``: our callback in transformers' own table of reporters, without loading transformers.

The table stands in one module of transformers. Where that is loaded already the name is entered at once, else when
it is loaded: a finder waits for this one module, and leaves when it has come.
"""

from __future__ import annotations

import sys
from typing import Any

MODULE = "transformers.integrations.integration_utils"
TABLE, NAME = "INTEGRATION_TO_CALLBACK", "rlvitals"


class Callback:
    """A class because transformers makes an object of it; that object is an `RLVitalsCallback`."""

    def __new__(cls) -> Any:
        from importlib import import_module

        return import_module("rlvitals.integrations.trl.reporting").RLVitalsCallback()


def register() -> None:
    """Lets ``report_to`` know our name, now or when transformers is loaded."""
    loaded = sys.modules.get(MODULE)
    if loaded is not None:
        _enter(loaded)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _enter(module: Any) -> None:
    table = getattr(module, TABLE, None)
    if isinstance(table, dict):
        table.setdefault(NAME, Callback)


class _Finder:
    """Has no word on any other module, and finds this one by those behind it."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != MODULE:
            return None
        from importlib.util import find_spec

        if self in sys.meta_path:
            sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Entering(spec.loader)  # type: ignore[assignment]
        return spec


class _Entering:
    """Loads by the module's own loader, then enters our name."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _enter(module)
