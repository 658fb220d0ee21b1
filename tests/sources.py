"""Committed files, and the product's parsed Python files, for tests of code rules."""

from __future__ import annotations

import ast
import gc
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("bot", "ingestion", "storage")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def committed() -> list[Path]:
    """Return every file that is tracked by git and exists."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


@dataclass(frozen=True)
class Module:
    """A file: its dotted name, text and syntax tree."""

    path: Path
    name: str
    text: str
    tree: ast.Module

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def package(self) -> str:
        """Package from which relative imports start."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def imports(self) -> set[str]:
        """Dotted names of all imported modules, including type-only and nested imports."""
        found: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                origin = self._origin(node)
                found.update(f"{origin}.{alias.name}" for alias in node.names)
        return found

    def _origin(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        base = self.package.split(".")
        above = base[: len(base) - node.level + 1]
        return ".".join([*above, node.module] if node.module else above)

    def functions(self) -> Iterator[Function]:
        """Return every function and method, including nested ones."""
        return (node for node in self.nodes if isinstance(node, Function))


@cache
def modules() -> tuple[Module, ...]:
    """Return all modules of the three packages."""
    paths = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    gc.disable()  # collecting garbage in growing trees takes three quarters of the parsing time
    try:
        return tuple(parse(path) for path in paths)
    finally:
        gc.freeze()
        gc.enable()


def parse(path: Path) -> Module:
    """Parse one file."""
    text = path.read_text(encoding="utf-8")
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(path, name, text, ast.parse(text, filename=str(path)))
