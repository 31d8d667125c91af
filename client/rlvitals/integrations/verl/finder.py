"""A finder that lets modules be found and executed as ever, and shows them to us when they are."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Mapping, Sequence
from threading import get_ident
from types import ModuleType
from typing import Any

from rlvitals.guard import Guard


class PatchingFinder(importlib.abc.MetaPathFinder):
    """``calls`` maps a module's full name to what is called with it once, after it was executed."""

    def __init__(self, calls: Mapping[str, Callable[[ModuleType], None]]) -> None:
        self.calls = dict(calls)
        self._asking: set[tuple[int, str]] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        question = get_ident(), fullname
        # other tools' finders ask all finders again, us among them
        if fullname not in self.calls or question in self._asking:
            return None
        self._asking.add(question)
        try:
            spec = self._found(fullname, path, target)
        finally:
            self._asking.discard(question)
        if spec is not None:
            with Guard(f"watching {fullname}"):
                self._watch(fullname, spec.loader)
        return spec

    def _found(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> importlib.machinery.ModuleSpec | None:
        for finder in list(sys.meta_path):
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(fullname, path, target)
                if spec is not None:
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
