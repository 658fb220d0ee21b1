"""Dependency injection in tests: no test patches our own code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from harness.tables import for_each
from sources import PACKAGES, ROOT, parse

SETTERS = ("__setattr__", "delattr", "delitem", "object", "patch", "setattr", "setitem")

Names = dict[str, str]


def imported(tree: ast.Module) -> Names:
    """Return the dotted name of each imported name."""
    names: Names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {one.asname or one.name.partition(".")[0]: one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return names


def root_of(target: ast.expr) -> str:
    """Return the name or literal at the start of a chain of attributes, items and calls."""
    while isinstance(target, ast.Attribute | ast.Call | ast.Subscript):
        target = target.func if isinstance(target, ast.Call) else target.value
    return str(target.value) if isinstance(target, ast.Constant) else ast.unparse(target)


def patches(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield calls that replace parts of our code, or of an object that may be ours."""
    names = imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name) and node.args:
            is_method = isinstance(node.func, ast.Attribute)
            setter = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if setter not in SETTERS:
                continue
            root = root_of(node.args[0])
            is_known = root in names or isinstance(node.args[0], ast.Constant)
            # a fixture's setattr may replace third-party parts, which must be named
            if is_ours(names.get(root, root)) or (is_method and not is_known):
                yield node
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            root = root_of(node)
            if root in {"self", "cls"}:
                continue
            if is_ours(names.get(root, "")) or re.search(r"\._(?!_)", ast.unparse(node)):
                yield node


def is_ours(origin: str) -> bool:
    """True for names within the product."""
    return origin.partition(".")[0] in PACKAGES


def test_no_test_patches_our_own_code() -> None:
    """Shows that times, paths, limits and collaborators are injected; only third-party code is patched."""
    found = [
        f"{module}:{node.lineno}: {ast.unparse(node)}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for module in [parse(path)]
        for node in patches(module.tree)
    ]
    assert not found, "\n".join(found)


@for_each(
    ("is_refused", "line"),
    [
        (True, "patch.setattr(leases, 'SECONDS', 1)"),
        (True, "patch.setattr('storage.sql.leased_queue.SECONDS', 1)"),
        (True, "patch.setattr(leases.os, 'kill', die)"),
        (True, "patch.setattr(house.keys, 'refresh', fail)"),
        (True, "setattr(leases, 'SECONDS', 1)"),
        (True, "mock.patch('storage.sql.leased_queue.SECONDS', 1)"),
        (True, "mock.patch.object(leases, 'SECONDS', 1)"),
        (True, "leases.SECONDS = 1"),
        (True, "worker._pause = 1"),
        (True, "worker._queue.claim = fail"),
        (False, "patch.setattr(os, 'fsync', fail)"),
        (False, "patch.setattr('sys.argv', [])"),
        (False, "setattr(faults, name, True)"),
        (False, "self._pause = 1"),
        (False, "slack.is_down = True"),
    ],
)
def test_a_patch_is_detected_in_any_form(is_refused: bool, line: str) -> None:
    """Shows that the rule cannot be circumvented, and that fakes are allowed."""
    tree = ast.parse(f"import os\nfrom storage.sql import leases\n{line}\n")
    assert bool(list(patches(tree))) is is_refused
