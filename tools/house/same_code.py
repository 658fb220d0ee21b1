"""Checks that a change of text changes no code.

Compares the syntax trees of all Python files, without docstrings and literals that are statements, between a
revision and the working tree: ``python -m tools.house.same_code [REVISION]``. ``--strings`` also ignores the
content of strings, for a change of user-facing text.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from pathlib import Path


class _Bare(ast.NodeTransformer):
    """Removes text that does not affect the program."""

    def __init__(self, *, without_strings: bool) -> None:
        self._without_strings = without_strings

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Remove a statement that is a string literal."""
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return None
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Blank a string, if requested."""
        if self._without_strings and isinstance(node.value, str):
            return ast.Constant("")
        return node


def bare_code(text: str, *, without_strings: bool = False) -> str:
    """Return a module's syntax tree without docstrings, as text."""
    return ast.dump(_Bare(without_strings=without_strings).visit(ast.parse(text)))


def changed_code(revision: str, top: Path, *, without_strings: bool = False) -> list[str]:
    """Return the Python files whose code differs between a revision and the working tree."""
    names = _git(top, "ls-tree", "-r", "--name-only", revision).splitlines()
    before = {name for name in names if name.endswith(".py")}
    now = {name for name in _git(top, "ls-files").splitlines() if name.endswith(".py")}
    changed = sorted(before ^ now)
    for name in sorted(before & now):
        old, new = _git(top, "show", f"{revision}:{name}"), (top / name).read_text()
        if old != new and bare_code(old, without_strings=without_strings) != bare_code(
            new, without_strings=without_strings
        ):
            changed.append(name)
    return changed


def _git(top: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=top, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """List the files whose code differs; exit with 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("revision", nargs="?", default="HEAD")
    parser.add_argument("--strings", action="store_true", help="leave out the words of strings, too")
    options = parser.parse_args()
    changed = changed_code(options.revision, Path.cwd(), without_strings=options.strings)
    print("\n".join(changed) or "the same code")
    sys.exit(bool(changed))


if __name__ == "__main__":
    main()
