"""OpenRLHF's releases as source: which classes, methods and arguments are there, without importing any of it."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.trainers.environments import CACHE

PIP_S = 300.0


@dataclass(frozen=True, slots=True)
class Source:
    """One release: the root of its package."""

    root: Path

    @classmethod
    def of(cls, release: str) -> Source:
        """Fetched once, without what it depends on."""
        folder = CACHE / "wheels" / f"openrlhf-{release}"
        if not folder.is_dir():
            wheels = CACHE / "wheels"
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--python-version", "3.11"]
            options = ["--only-binary", ":all:", "--dest", str(wheels), f"openrlhf=={release}"]
            subprocess.run([*command, *options], check=True, timeout=PIP_S)
            (wheel,) = wheels.glob(f"openrlhf-{release}-*.whl")
            zipfile.ZipFile(wheel).extractall(folder)
        return cls(next(path.parent for path in folder.rglob("openrlhf/__init__.py")).parent)

    @property
    def paths(self) -> tuple[Path, Path]:
        """What makes this release the one that is imported, and its metadata the one that is found."""
        return self.root, next(path for path in self.root.parents if any(path.glob("openrlhf-*.dist-info")))

    def arguments(self, module: str, owner: str, name: str) -> list[str] | None:
        """The argument names of a method (of the class or its bases in the module) or function; None for none."""
        tree = self.tree(module)
        found = _method(tree, owner, name) if owner else self._function(tree, name)
        return None if found is None else [argument.arg for argument in found.args.args if argument.arg != "self"]

    def tree(self, module: str) -> ast.Module:
        return ast.parse(self.path(module).read_text())

    def path(self, module: str) -> Path:
        return self.root.joinpath(*module.split(".")).with_suffix(".py")

    def _function(self, tree: ast.Module, name: str) -> ast.FunctionDef | None:
        """A function of the module, or one that it imports from another of the package."""
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node
            if isinstance(node, ast.ImportFrom) and node.module and name in {alias.name for alias in node.names}:
                return self._function(self.tree(node.module), name)
        return None


def _method(tree: ast.Module, owner: str, name: str) -> ast.FunctionDef | None:
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for kind in _lineage(classes, owner):
        for node in kind.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node
    return None


def _lineage(classes: dict[str, ast.ClassDef], name: str) -> Iterator[ast.ClassDef]:
    kind = classes.get(name)
    if kind is None:
        return
    yield kind
    for base in kind.bases:
        if isinstance(base, ast.Name):
            yield from _lineage(classes, base.id)
