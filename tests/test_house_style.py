"""How the code reads: sizes, nesting, names and docstrings, measured rather than remembered.

The limits are those of the codebases we would like to be compared with: cap the tail, not the average.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from statistics import median

from sources import Function, Module, modules

MODULE_LINES = 300
FUNCTION_LINES = 40
NESTING = 2
VAGUE_NAMES = re.compile(r"(^|_)(utils?|helpers?|manager|common|misc)(_|$)|(Utils?|Helper|Manager)$")
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.Match)
"""What a reader keeps in mind; ``with`` is a lifetime, not a condition."""
UNPICKLERS = {"pickle", "marshal", "shelve", "jsonpickle", "dill", "joblib", "cloudpickle"}

BROAD_EXCEPTS = {
    "bot/slack": "a platform's boundary",
    "bot/teams": "a platform's boundary",
    "bot/web": "a platform's boundary",
    "bot/cli/ask.py": "one line of a batch",
    "bot/cli/main.py": "the last edge before a person",
    "bot/core/announcing.py": "one look of many",
    "bot/core/conversation.py": "one question of many",
    "ingestion/work/aside.py": "a thread's boundary: whoever waits gets the error",
    "ingestion/work/schedule.py": "a tick",
    "ingestion/side_program.py": "one job of many",
    "ingestion/sources/patience.py": "carried from one thread to the other",
    "ingestion/work/worker.py": "one document of many",
}
"""Where ``except Exception`` may stand, and what it keeps going."""


def length(function: Function) -> int:
    """Lines of a function from its ``def`` to its end, its docstring left out."""
    documented = ast.get_docstring(function, clean=False)
    return function.end_lineno - function.lineno + 1 - (documented.count("\n") + 1 if documented else 0)  # type: ignore[operator]


def depth(node: ast.AST) -> int:
    """How many blocks stand inside one another below a node; ``elif`` continues its ``if``."""
    return max((deepened(node, child) for child in ast.iter_child_nodes(node)), default=0)


def deepened(parent: ast.AST, child: ast.AST) -> int:
    """The depth a child adds to its parent's."""
    if isinstance(child, Function | ast.ClassDef):
        return 0
    is_elif = isinstance(parent, ast.If) and isinstance(child, ast.If) and child in parent.orelse
    return depth(child) + (isinstance(child, BLOCKS) and not is_elif)


def public(module: Module) -> Iterator[tuple[str, ast.AST]]:
    """The public classes, functions and methods of a module, with their names."""
    yield from named(module.tree.body, "")
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from named(node.body, f"{node.name}.")


def named(body: list[ast.stmt], owner: str) -> Iterator[tuple[str, ast.AST]]:
    """The definitions of a body whose names are public; a property's name may be all there is to say."""
    for node in body:
        if (
            isinstance(node, Function | ast.ClassDef)
            and not node.name.startswith("_")
            and not is_property(node)
        ):
            yield owner + node.name, node


def is_property(node: Function | ast.ClassDef) -> bool:
    """Whether a definition is read like an attribute."""
    return any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list)


def test_no_module_is_longer_than_a_sitting() -> None:
    """Shows that every module can be read in one go."""
    long = [f"{module}: {lines}" for module in modules() if (lines := module.text.count("\n")) > MODULE_LINES]
    assert not long, "\n".join(long)


def test_no_function_is_longer_than_a_screen() -> None:
    """Shows that every function fits on a screen, and that most are far shorter."""
    sizes = {
        f"{module}:{node.lineno} {node.name}": length(node)
        for module in modules()
        for node in module.functions()
    }
    long = [f"{name}: {size}" for name, size in sizes.items() if size > FUNCTION_LINES]
    assert not long, "\n".join(long)
    assert median(sizes.values()) < 10
    assert sum(size <= 20 for size in sizes.values()) >= 0.9 * len(sizes)


def test_blocks_stand_two_deep_and_hardly_ever_three() -> None:
    """Shows that no reader has to keep more than two conditions in mind, three in a rare loop."""
    depths = {
        f"{module}:{node.lineno} {node.name}": depth(node)
        for module in modules()
        for node in module.functions()
    }
    deep = [name for name, found in depths.items() if found > NESTING]
    assert not [name for name in deep if depths[name] > NESTING + 1], "\n".join(deep)
    assert len(deep) <= 0.03 * len(depths), "\n".join(deep)


def test_every_module_and_every_public_name_says_what_it_is_for() -> None:
    """Shows that nothing public lacks its sentence."""
    silent = [
        str(module) for module in modules() if module.text.strip() and not ast.get_docstring(module.tree)
    ]
    silent += [
        f"{module}:{node.lineno} {name}"  # type: ignore[attr-defined]
        for module in modules()
        for name, node in public(module)
        if not ast.get_docstring(node)  # type: ignore[arg-type]
    ]
    assert not silent, "\n".join(silent)


def test_names_say_what_a_thing_does() -> None:
    """Shows that nothing is called utils, helpers, manager or common, where anything could go."""
    vague = [str(module) for module in modules() if VAGUE_NAMES.search(module.path.stem)]
    vague += [
        f"{module}: {name}" for module in modules() for name, _ in public(module) if VAGUE_NAMES.search(name)
    ]
    assert not vague, "\n".join(vague)


def test_nothing_unpickles() -> None:
    """Shows that no bytes are ever turned into objects that run code."""
    found = [
        f"{module} imports {name}"
        for module in modules()
        for name in module.imports()
        if name.split(".")[0] in UNPICKLERS
    ]
    assert not found, "\n".join(found)


def test_only_the_command_line_prints() -> None:
    """Shows that standard output belongs to results: everything else logs."""
    found = [
        f"{module}:{node.lineno}"
        for module in modules()
        if not module.name.startswith("bot.cli")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not found, "\n".join(found)


def test_unforeseen_errors_are_caught_at_the_edges_only() -> None:
    """Shows that a fault nobody thought of is never swallowed on its way to the edge."""
    found = [
        f"{module}:{node.lineno}"
        for module in modules()
        if not str(module).startswith(tuple(BROAD_EXCEPTS))
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler) and is_broad(node)
    ]
    assert not found, "\n".join(found)


def is_broad(handler: ast.ExceptHandler) -> bool:
    """Whether it catches everything and does not raise it again."""
    kinds = {"Exception", "BaseException"}
    caught = handler.type is None or any(
        isinstance(node, ast.Name) and node.id in kinds for node in ast.walk(handler.type)
    )
    return caught and not any(isinstance(node, ast.Raise) for node in ast.walk(handler))


def test_nothing_is_left_for_later() -> None:
    """Shows that no file holds a promise instead of code, and that a silenced check says why."""
    promise = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|type: ignore(?!\[)|# noqa(?!:)")
    found = [
        f"{module}:{number}"
        for module in modules()
        for number, line in enumerate(module.text.splitlines(), 1)
        if promise.search(line)
    ]
    assert not found, "\n".join(found)
