"""Code style measured by program: sizes, folders, names and docstrings.

Concepts decide where a module ends; the limits bound the tail and list the exceptions.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import pytest
from sources import PACKAGES, ROOT, Function, Module, modules

FOLDER_FILES = 12
MODULE_LINES = 600
LONG_MODULE = 400
SHORT_MODULE = 60
BODY_LINES = 60
SHORT_BODY = 20
TEST_NAME_CHARS = 60

# Modules over 400 lines, with the reason for each.
LONG_MODULES = {
    "bot/bootstrap.py": "the one place that knows every concrete class",
    "bot/chat/conversation/conversation.py": "the loop that sees each question through, in one state",
    "bot/core/models.py": "the values that all stages share",
    "bot/answers/understanding/answer_types.py": "one table of what questions ask for",
    "bot/cli/main.py": "the whole command line in one picture",
    "ingestion/app.py": "the one place that puts the parts of ingestion together",
    "storage/chat/inbox.py": "every step of a question on one fence",
    "storage/chat/notifications.py": "every kind of notice, and when it is still true",
    "storage/models.py": "the values that all rooms share",
    "storage/settings.py": "all settings of the storage, and how each package's are read",
    "storage/sql/tables.py": "all tables in one picture",
}

# Modules under 60 lines with fewer than two importers, with the reason for each.
SHORT_MODULES = {
    "bot/chat/conversation/event_deduplication.py": "a defence with a test of its own",
    "storage/index/embedded/tenant_check.py": "asked by readiness, apart from what answers questions",
    "bot/cli/programs/mcp.py": "imported only where an assistant starts it",
    "bot/cli/security/audit.py": "the audit's commands, which the parser names",
    "bot/answers/passage_search.py": "what programs find, apart from what is answered",
    "bot/answers/understanding/subjects.py": "the one rule of the lexical check that sees all documents",
    "bot/llm/metadata_filler.py": "imported only where a model reads metadata",
    **{
        f"bot/platforms/slack/listeners/{name}.py": "a listener a file"
        for name in ("channels", "messages", "questions", "shared_answers", "surfaces")
    },
    "bot/llm/multi_query.py": "imported only where a model rewords",
    "ingestion/extraction/located_metadata.py": "imported only where a model reads metadata",
    "ingestion/pipeline.py": "the order of all steps",
    "ingestion/reading/generations.py": "what makes a reading a new generation",
    "storage/documents/corrections.py": "one table",
    "storage/index/embedded/term_frequencies.py": "a cache with its own lock",
    "storage/index/weaviate/launch.py": "a program of its own",
    "storage/pdf/landlock.py": "one of the kernel's facilities, as seccomp beside it",
    "storage/sql/migrations/env.py": "Alembic runs it",
    "storage/sql/migrations/revisions.py": "asked without importing Alembic",
    "storage/sql/migrations/shape.py": "called by each migration that changes its indexes",
    "storage/sql/migrations/upgrade.py": "imports Alembic, and is imported only to upgrade",
}

# Module and folder names in -ing that are terms of the field.
FIELD_TERMS = {
    "answering",
    "captioning",
    "chunking",
    "notification_wording",
    "query_rewriting",
    "ranking",
    "reading",
    "reranking",
    "rewriting",
    "understanding",
    "wording",
}

# Module names that several modules of a package may share, by role.
SAME_NAMES = {
    "adapter": "one a platform",
    "address": "one a platform",
    "app": "the bot's, and the web side's",
    "base": "the contract of a room",
    "index": "one an engine",
    "messenger": "one a platform",
    "models": "the values of a room",
    "platform": "one a platform",
    "passwords": "of folders, and on their way to the child that tries them",
    "settings": "of a room",
}

# First words that make a docstring a riddle: it begins with a verb, or with the noun that it defines.
FIRST_WORDS_BANNED = set(
    "What Whatever Whoever Whether Who Whose Why Where When Which How Of As By At These Those That This One"
    " It Its Nothing Nobody Something Somebody Everything Everybody So If".split()
)
VAGUE_NAMES = re.compile(r"(^|_)(utils?|helpers?|manager|common|misc)(_|$)|(Utils?|Helper|Manager)$")
UNPICKLERS = {"pickle", "marshal", "shelve", "jsonpickle", "dill", "joblib", "cloudpickle"}

# Files that may use ``except Exception``, with the work it keeps going.
BROAD_EXCEPTS = {
    "bot/app.py": "one round of many",
    "bot/operations/doctor/report.py": "one check of many",
    "bot/platforms/slack": "a platform's boundary",
    "bot/platforms/teams": "a platform's boundary",
    "bot/web": "a platform's boundary",
    "bot/cli/ask.py": "one line of a batch",
    "bot/cli/main.py": "the last edge before a person",
    "bot/chat/notifications/answer_revisions.py": "one message of many",
    "bot/chat/notifications/notifier.py": "one round of many",
    "bot/chat/conversation/conversation.py": "one question of many",
    "bot/chat/conversation/live_updates.py": "a decoration, which gives way to everything else",
    "storage/threads.py": "a thread's boundary: whoever waits gets the error",
    "ingestion/jobs/scheduler.py": "a tick",
    "ingestion/compute_program.py": "one job of many",
    "ingestion/sources/watchdog.py": "carried from one thread to the other",
    "ingestion/jobs/worker.py": "one document of many",
    "storage/task_group.py": "one renewal of many",
}


def body_lines(function: Function) -> int:
    """Return the number of lines in a function's body, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator]


def lines(module: Module) -> int:
    """Return the number of lines of a module."""
    return module.text.count("\n")


def is_measured(module: Module) -> bool:
    """True if size and name of a module are a choice, unlike those of `__init__` files and migrations."""
    return module.path.name != "__init__.py" and "versions" not in module.path.parts


def measured() -> list[Module]:
    """Return the modules that the rules apply to."""
    return [module for module in modules() if is_measured(module)]


@cache
def importers() -> Counter[str]:
    """Count the modules that import each module, by its dotted name."""
    return Counter(
        imported
        for module in modules()
        for imported in {part for name in module.imports for part in (name, name.rpartition(".")[0])}
    )


def public(module: Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield the public classes, functions and methods of a module, with their names."""
    yield from named(module.tree.body, "")
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from named(node.body, f"{node.name}.")


def named(body: list[ast.stmt], owner: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield public definitions of a body, except properties, whose name may say everything."""
    for node in body:
        if (
            isinstance(node, Function | ast.ClassDef)
            and not node.name.startswith("_")
            and not is_property(node)
        ):
            yield owner + node.name, node


def is_property(node: Function | ast.ClassDef) -> bool:
    """True if a definition is a property."""
    return any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list)


def test_a_folder_can_be_taken_in_at_a_glance() -> None:
    """Shows that no folder has more than twelve modules; migrations are exempt."""
    folders = Counter(module.path.parent for module in measured())
    crowded = [f"{folder}: {count}" for folder, count in folders.items() if count > FOLDER_FILES]
    assert not crowded, "\n".join(crowded)


def test_no_two_test_modules_share_a_name() -> None:
    """Shows that the whole suite can be collected: pytest imports each by its bare name."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_modules_are_as_long_as_their_concepts() -> None:
    """Shows that no module exceeds 600 lines, and that one over 400 has a reason."""
    long = [f"{module}: {lines(module)}" for module in measured() if lines(module) > MODULE_LINES]
    long += [
        f"{module}: {lines(module)} without a reason"
        for module in measured()
        if lines(module) > LONG_MODULE and str(module) not in LONG_MODULES
    ]
    assert not long, "\n".join(long)


def test_a_short_module_is_shared_or_has_a_reason() -> None:
    """Shows that no module was split off its only importer."""
    slivers = [
        f"{module}: {lines(module)}"
        for module in measured()
        if lines(module) < SHORT_MODULE and str(module) not in SHORT_MODULES and importers()[module.name] < 2
    ]
    assert not slivers, "\n".join(slivers)


def test_every_exception_is_still_needed() -> None:
    """Shows that no exception outlives its reason."""
    sizes = {str(module): lines(module) for module in measured()}
    stale = [name for name in LONG_MODULES if sizes.get(name, 0) <= LONG_MODULE]
    stale += [name for name in SHORT_MODULES if sizes.get(name, SHORT_MODULE) >= SHORT_MODULE]
    stale += [name for name in BROAD_EXCEPTS if not any(one.startswith(name) for one in sizes)]
    assert not stale, "\n".join(stale)


def test_functions_are_short() -> None:
    """Shows that 90 % of all bodies are below twenty lines, and none exceeds 60."""
    sizes = {
        f"{module}:{node.lineno} {node.name}": body_lines(node)
        for module in modules()
        for node in module.functions()
    }
    long = [f"{name}: {size}" for name, size in sizes.items() if size > BODY_LINES]
    assert not long, "\n".join(long)
    assert sum(size < SHORT_BODY for size in sizes.values()) >= 0.9 * len(sizes)


def test_modules_and_public_names_have_docstrings() -> None:
    """Shows that no public name lacks a docstring."""
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


def docstrings(module: Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of every docstring of a module."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if text := ast.get_docstring(node):
                yield getattr(node, "lineno", 1), text


def test_docstrings_begin_with_a_verb_or_noun() -> None:
    """Shows that no docstring begins with a pronoun, a conjunction or a preposition."""
    found = [
        f"{module}:{line} {text.split()[0]}"
        for module in modules()
        for line, text in docstrings(module)
        if text.split()[0].strip(",;:") in FIRST_WORDS_BANNED
    ]
    assert not found, "\n".join(found)


def test_no_literal_explains_a_name() -> None:
    """Shows that constants and fields are explained by a comment in front, or by their name."""
    found = [
        f"{module}:{node.lineno}"
        for module in modules()
        for owner in ast.walk(module.tree)
        if isinstance(owner, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for before, node in pairwise(owner.body)
        if isinstance(before, ast.Assign | ast.AnnAssign) and is_text(node)
    ]
    assert not found, "\n".join(found)


def is_text(node: ast.stmt) -> bool:
    """True if a statement is a string that does nothing."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def test_names_say_what_a_thing_does() -> None:
    """Shows that no module is called utils, helpers, manager or common."""
    vague = [str(module) for module in modules() if VAGUE_NAMES.search(module.path.stem)]
    vague += [
        f"{module}: {name}" for module in modules() for name, _ in public(module) if VAGUE_NAMES.search(name)
    ]
    assert not vague, "\n".join(vague)


def test_modules_are_called_by_nouns() -> None:
    """Shows that modules have nouns as names, except terms of the field in -ing."""
    parts = {(str(module), part) for module in measured() for part in module.name.split(".")}
    verbal = sorted(f"{module}: {part}" for module, part in parts if is_verbal(part))
    assert not verbal, "\n".join(verbal)


def is_verbal(name: str) -> bool:
    """True if a name ends in -ing and is no term of the field."""
    return name.endswith("ing") and name not in FIELD_TERMS


@pytest.mark.parametrize("package", PACKAGES)
def test_a_module_can_be_named_without_its_folder(package: str) -> None:
    """Shows that module names are unique in their package, except for parallel roles."""
    places = defaultdict(list)
    for module in measured():
        if module.name.split(".")[0] == package:
            places[module.path.stem].append(str(module))
    shared = {name: found for name, found in places.items() if len(found) > 1}
    twins = [f"{name}: {found}" for name, found in shared.items() if name not in SAME_NAMES]
    assert not twins, "\n".join(twins)


def test_a_class_name_means_one_class() -> None:
    """Shows that no two public classes of the product share a name."""
    places = defaultdict(list)
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{module}:{node.lineno}")
    twins = [f"{name}: {found}" for name, found in places.items() if len(found) > 1]
    assert not twins, "\n".join(twins)


def test_names_of_tests_are_short() -> None:
    """A test's name has at most 60 characters; its docstring says the rest."""
    names = [
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    assert len(names) > 1000
    assert [name for name in names if len(name) > TEST_NAME_CHARS] == []


def test_nothing_unpickles() -> None:
    """Shows that no bytes are deserialized into objects that run code."""
    found = [
        f"{module} imports {name}"
        for module in modules()
        for name in module.imports
        if name.split(".")[0] in UNPICKLERS
    ]
    assert not found, "\n".join(found)


def test_broad_excepts_are_at_the_edges_only() -> None:
    """Shows that an unexpected error is never swallowed below the outermost layers."""
    found = [
        f"{module}:{node.lineno}"
        for module in modules()
        if not str(module).startswith(tuple(BROAD_EXCEPTS))
        for node in module.nodes
        if isinstance(node, ast.ExceptHandler) and is_broad(node)
    ]
    assert not found, "\n".join(found)


def is_broad(handler: ast.ExceptHandler) -> bool:
    """True if a handler catches everything and does not re-raise it."""
    kinds = {"Exception", "BaseException"}
    caught = handler.type is None or any(
        isinstance(node, ast.Name) and node.id in kinds for node in ast.walk(handler.type)
    )
    return caught and not any(isinstance(node, ast.Raise) for node in ast.walk(handler))


def test_nothing_is_left_for_later() -> None:
    """Shows that there are no TODOs, and that a silenced check names its rule."""
    promise = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|type: ignore(?!\[)|# noqa(?!:)")
    found = [
        f"{module}:{number}"
        for module in modules()
        for number, line in enumerate(module.text.splitlines(), 1)
        if promise.search(line)
    ]
    assert not found, "\n".join(found)


def texts(module: Module) -> Iterator[str]:
    """Yield the string constants of a module that are no docstrings."""
    said = {id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def test_no_text_names_what_only_a_checkout_has() -> None:
    """Shows that advice also applies to an installed wheel, without files of a checkout."""
    checkout = re.compile(r"make (?:install|demo|format)|(?<![\w/])(?:deploy|docs|tests)/")
    packer = "bot/web/source_archive.py"
    found = {str(module): hits for module in modules() if (hits := [*filter(checkout.search, texts(module))])}
    assert found.pop(packer)
    assert found == {}
