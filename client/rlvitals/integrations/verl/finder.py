"""A finder that lets modules be found and executed as ever, and shows them to us when they are."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from rlvitals.guard import Guard


class PatchingFinder(importlib.abc.MetaPathFinder):
    """``calls`` maps a module's full name to what is called with it once, after it was executed."""

    def __init__(self, calls: Mapping[str, Callable[[ModuleType], None]]) -> None:
        self.calls = dict(calls)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.calls:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                with Guard(f"watching {fullname}"):
                    self._watch(fullname, spec.loader)
                return spec
        return None

    def _watch(self, fullname: str, loader: Any) -> None:
        original = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            original(module)
            with Guard(f"patching {fullname}"):
                self.calls[fullname](module)

        # a loader belongs to one module
        loader.exec_module = exec_module
