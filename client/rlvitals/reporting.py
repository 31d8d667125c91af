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
    elif not any(_is_ours(finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _is_ours(finder: object) -> bool:
    """By its name: after a reload of this module the class is another."""
    return f"{type(finder).__module__}.{type(finder).__name__}" == f"{__name__}.{_Finder.__name__}"


def _enter(module: Any) -> None:
    table = getattr(module, TABLE, None)
    if isinstance(table, dict):
        table.setdefault(NAME, Callback)


class _Finder:
    """Has no word on any other module, and finds this one by the others. Being asked is not yet being loaded."""

    def __init__(self) -> None:
        self._asking = False

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        # a finder behind us may ask all of them again
        if fullname != MODULE or self._asking:
            return None
        self._asking = True
        try:
            spec = _found(self, fullname, path, target)
        finally:
            self._asking = False
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Entering(spec.loader)
        return spec


def _found(asking: object, fullname: str, path: Any, target: Any) -> Any:
    for finder in list(sys.meta_path):
        if finder is not asking and hasattr(finder, "find_spec"):
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                return spec
    return None


class _Entering:
    """Loads by the module's own loader, which it is like in all else, then enters our name."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        if name == "_loader":
            raise AttributeError(name)  # a copy that is still empty
        return getattr(self._loader, name)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _enter(module)
        sys.meta_path[:] = [finder for finder in sys.meta_path if not _is_ours(finder)]
