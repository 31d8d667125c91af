"""Reports the sizes of files and functions against what the house aims at; never a gate."""

from __future__ import annotations

import ast
import statistics
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("client", "monitor", "dashboard", "migrations/rlvitals_migrations")
FILE_MEDIAN, FILE_LARGE, FUNCTION_MEDIAN, FUNCTION_LARGE = 120, 300, 10, 40


def main() -> None:
    files = {
        p: p.read_text(encoding="utf-8")
        for s in SOURCES
        for p in (ROOT / s).rglob("*.py")
        if "versions" not in p.parts
    }
    lines = {p: text.count("\n") for p, text in files.items() if text.strip()}
    functions = {f"{p.relative_to(ROOT)}:{name}": n for p, text in files.items() for name, n in _functions(text)}
    _report("files", {str(p.relative_to(ROOT)): n for p, n in lines.items()}, FILE_MEDIAN, FILE_LARGE)
    _report("functions", functions, FUNCTION_MEDIAN, FUNCTION_LARGE)


def _functions(text: str) -> list[tuple[str, int]]:
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [(f"{n.name}:{n.lineno}", (n.end_lineno or n.lineno) - n.lineno + 1) for n in nodes]


def _report(what: str, sizes: dict[str, int], median: int, large: int) -> None:
    if not sizes:
        return
    over = sorted((n, name) for name, n in sizes.items() if n > large)
    print(
        f"{what}: {len(sizes)}, median {statistics.median(sizes.values()):.0f} lines (aim {median}), "
        f"{len(over)} over {large}"
    )
    for n, name in reversed(over[-8:]):
        print(f"  {n:5d}  {name}")


if __name__ == "__main__":
    main()
