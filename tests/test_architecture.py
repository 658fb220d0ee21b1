"""Import rules between packages, and the home of each SDK: the diagram of docs/walk.md, enforced."""

from __future__ import annotations

import ast
import subprocess
import sys
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from harness.tables import for_each
from sources import Module, modules

from bot.platforms.registry import PLATFORMS

PROGRAMS = ("bot", "ingestion", "storage")
# The composition root and the command line: they know every concrete class.
ROOTS = ("bot.app", "bot.bootstrap", "bot.cli")

HOMES = {
    "slack_bolt": ("bot.platforms.slack",),
    "slack_sdk": ("bot.platforms.slack",),
    "botbuilder": ("bot.platforms.teams",),
    "botframework": ("bot.platforms.teams",),
    "jwt": ("bot.platforms.teams",),
    "authlib": ("bot.web.sign_in.openid_provider",),
    "joserfc": ("bot.web.sign_in.openid_provider",),
    "aiohttp": (
        "bot.chat.chat_platform",
        "bot.operations.doctor",
        "bot.file_download",
        "bot.rerankers.rerank_api",
        "bot.platforms.slack",
        "bot.platforms.teams",
        "bot.web",
        "ingestion.web_pages",
        *ROOTS,
    ),
    "jinja2": ("bot.web",),
    "mcp": ("bot.web.api.mcp_server",),
    "mcp_types": ("bot.web.api.mcp_server",),
    "openai": (
        "bot.llm.chat_model",
        "ingestion.reading.captioning",
        "storage.embeddings.openai_embedder",
    ),
    "fsspec": (
        "ingestion.sources.shares.fsspec_share",
        "ingestion.sources.shares.registry",
        "ingestion.sources.shares.s3",
        "storage.files.object_store",
    ),
    "s3fs": ("ingestion.sources.shares.s3",),
    "botocore": ("ingestion.sources.shares.s3",),
    "paramiko": ("ingestion.sources.shares.sftp",),
    "smbclient": ("ingestion.sources.shares.smb",),
    "smbprotocol": ("ingestion.sources.shares.smb",),
    "webdav4": ("ingestion.sources.shares.webdav",),
    "apscheduler": ("ingestion.jobs.scheduler",),
    "weaviate": ("storage.index.weaviate",),
    "httpx": ("ingestion.sources.shares.webdav", "storage.index.weaviate"),
    "charset_normalizer": ("storage.pdf.child.html_job",),
    "lxml": ("storage.pdf.child.html_job",),
    "protego": ("ingestion.web_pages.robots",),
    "trafilatura": ("storage.pdf.child.html_job",),
    "pymupdf": ("storage.pdf",),
    "fitz": (),
    "tiktoken": ("storage.text.token_counts",),
    "pymupdf4llm": ("storage.pdf.child.layout_job",),
    "onnxruntime": ("bot.rerankers.cross_encoder", "storage.embeddings.onnx_embedder", "storage.pdf"),
    "cv2": ("storage.pdf.child.ocr_engine",),
    "rapidfuzz": ("bot.answers.understanding.spelling_correction",),
    "rapidocr": ("storage.pdf.child.ocr_engine",),
    "py3langid": ("ingestion.extraction.metadata",),
    "tokenizers": (
        "bot.rerankers.cross_encoder",
        "storage.embeddings.onnx_embedder",
        "storage.text.token_counts",
    ),
    "Stemmer": ("storage.text.analyzer",),
    "sqlmodel": ("storage",),
    "sqlalchemy": ("storage",),
    "alembic": ("storage.sql.migrations",),
    "cryptography": ("bot.platforms.slack.installations.token_cipher",),
    "aiosqlite": ("storage.sql.group_commit",),
    "opentelemetry": ("bot.operations.metrics.otel_spans",),
    "prometheus_client": ("bot.operations.metrics",),
    "psycopg": ("storage.sql.postgres",),
    "pydantic_settings": ("storage.settings",),
    "dotenv": ("storage.settings",),
}

# The rooms of each package, bottom up: a room sees itself and lower layers.
LAYERS = {
    "bot": (
        ("loopback", "server_socket", "terminal"),
        ("answer_settings", "sign_in_settings", "console_secret", "core"),
        ("file_download", "quality", "settings"),
        ("answers", "health"),
        ("llm", "public_links", "uploads"),
        ("chat", "rerankers"),
        ("platforms", "web"),
        ("operations",),
        ("bootstrap",),
        ("app",),
        ("cli",),
    ),
    "bot.core": (
        ("models",),
        ("errors", "ports", "wording", "plaintext"),
    ),
    "bot.answers": (
        ("prompts", "verification"),
        ("understanding",),
        ("rewriting", "retrieval"),
        ("citations", "search_notes"),
        ("document_outline", "generation"),
        ("trace",),
        ("compound_questions", "passage_search", "trace_writer"),
        ("pipeline",),
    ),
    "bot.chat": (
        ("conversation",),
        ("commands",),
        ("notifications",),
        ("chat_service",),
        ("chat_platform",),
    ),
    "ingestion": (
        ("errors", "settings"),
        ("layout",),
        ("chunking",),
        ("extraction",),
        ("compute_program",),
        ("sources",),
        ("jobs",),
        ("folder_map", "reading", "publish", "web_pages"),
        ("watch", "pipeline"),
        ("app",),
    ),
    "storage": (
        ("errors",),
        (
            "models",
            "clock",
            "config_file",
            "crash_points",
            "mounts",
            "lru_cache",
            "task_group",
            "threads",
        ),
        ("sql", "text", "settings", "chat_models"),
        ("index",),
        ("chat", "embeddings", "installations", "pdf"),
        ("folders", "files", "readers"),
        ("queues", "web_pages"),
        ("documents",),
        ("erasure",),
        ("stores",),
        ("backup",),
    ),
}

# What the folder of a chat platform may import besides itself.
SEEN_BY_PLATFORMS = (
    "bot.answers.citations.signed_links",
    "bot.answers.citations.source_buttons",
    "bot.answers.generation.figures",
    "bot.answers.understanding.question_terms",
    "bot.chat",
    "bot.core",
    "bot.file_download",
    "bot.health",
    "bot.loopback",
    "bot.settings",
    "bot.uploads",
    "storage",
)

# What questions, chats and uploads know of storage: no engine and no SDK.
SEEN_BY_CORE = (
    "bot.core",
    "storage.chat",
    "storage.chat_models",
    "storage.clock",
    "storage.crash_points",
    "storage.documents.catalog",
    "storage.documents.vocabulary",
    "storage.embeddings.base",
    "storage.embeddings.cosine_scale",
    "storage.errors",
    "storage.folders.folder_status",
    "storage.folders.folders",
    "storage.index.base",
    "storage.index.live_index",
    "storage.installations.link_keys",
    "storage.lru_cache",
    "storage.models",
    "storage.mounts",
    "storage.queues.reading_repair",
    "storage.readers",
    "storage.sql.audit",
    "storage.task_group",
    "storage.text",
    "storage.web_pages",
)

# Packages that a room may import; the narrowest matching row counts.
MAY_IMPORT = {
    "storage": ("storage",),
    "ingestion": ("ingestion", "storage"),
    "bot": ("bot", "ingestion", "storage"),
    "bot.core": SEEN_BY_CORE,
    "bot.answers": (*SEEN_BY_CORE, "bot.answer_settings", "bot.answers"),
    "bot.uploads": (*SEEN_BY_CORE, "bot.answers.understanding", "bot.uploads"),
    "bot.chat": (
        *SEEN_BY_CORE,
        "bot.answers",
        "bot.chat",
        "bot.quality.monthly_usage",
        "bot.settings",
        "bot.uploads",
    ),
    "bot.chat.chat_service": (*SEEN_BY_CORE, "bot.chat", "storage.stores"),
    "bot.chat.chat_platform": (
        *SEEN_BY_CORE,
        "bot.chat",
        "bot.health",
        "bot.settings",
        "bot.uploads",
        "storage",
    ),
    "bot.quality": (*SEEN_BY_CORE, "bot.quality"),
    "bot.health": ("bot.health", "bot.server_socket", "bot.settings", "storage"),
    "bot.operations.doctor": (
        "bot.answers.citations",
        "bot.core",
        "bot.health",
        "bot.llm.chat_model",
        "bot.operations.doctor",
        "bot.platforms.registry",
        "bot.server_socket",
        "bot.settings",
        "bot.web.sign_in.openid_provider",
        "storage",
    ),
    "bot.operations.metrics": ("bot.answers.trace", "bot.core", "bot.operations.metrics", "storage"),
    "bot.llm": (
        "bot.answer_settings",
        "bot.answers.generation.prompt",
        "bot.answers.prompts",
        "bot.answers.verification.facts",
        "bot.core",
        "bot.llm",
        "bot.settings",
        "storage",
    ),
    "bot.rerankers": (
        "bot.answer_settings",
        "bot.answers",
        "bot.core",
        "bot.rerankers",
        "bot.settings",
        "storage",
    ),
    "bot.rerankers.llm_reranker": (
        "bot.answers",
        "bot.core",
        "bot.llm.chat_model",
        "bot.settings",
        "storage",
    ),
    "bot.platforms.registry": (
        "bot.chat.chat_platform",
        "bot.loopback",
        "bot.settings",
        "bot.platforms.slack.platform",
        "bot.platforms.teams.platform",
        "storage",
    ),
    "bot.platforms.slack": (*SEEN_BY_PLATFORMS, "bot.platforms.slack"),
    "bot.platforms.teams": (*SEEN_BY_PLATFORMS, "bot.platforms.teams"),
    "bot.web": (
        "bot.answers.citations",
        "bot.answers.trace",
        "bot.chat.conversation",
        "bot.chat.notifications",
        "bot.console_secret",
        "bot.core",
        "bot.loopback",
        "bot.quality",
        "bot.settings",
        "bot.sign_in_settings",
        "bot.uploads",
        "bot.web",
        "storage",
    ),
    "storage.index.embedded": (
        "storage.clock",
        "storage.crash_points",
        "storage.errors",
        "storage.index.base",
        "storage.index.embedded",
        "storage.models",
        "storage.lru_cache",
        "storage.sql",
        "storage.text",
    ),
    "storage.index.weaviate": (
        "storage.clock",
        "storage.crash_points",
        "storage.errors",
        "storage.index.base",
        "storage.index.weaviate",
        "storage.models",
        "storage.lru_cache",
        "storage.sql",
        "storage.task_group",
        "storage.text",
    ),
    "storage.pdf.child": (
        "storage.models",
        "storage.pdf",
        "storage.text.callouts",
        "storage.text.word_boxes",
    ),
    "ingestion.layout": ("ingestion.layout", "storage.models", "storage.pdf.models", "storage.text"),
    "ingestion.chunking": (
        "ingestion.chunking",
        "ingestion.layout",
        "storage.models",
        "storage.pdf.models",
        "storage.text",
    ),
    "ingestion.extraction": (
        "ingestion.chunking",
        "ingestion.extraction",
        "ingestion.layout",
        "storage.models",
        "storage.pdf.models",
        "storage.text",
    ),
    "ingestion.compute_program": (
        "ingestion.chunking",
        "ingestion.extraction",
        "ingestion.layout",
        "storage.errors",
        "storage.files.reading_files",
        "storage.models",
        "storage.pdf.models",
        "storage.pdf.protocol",
        "storage.pdf.sandbox",
        "storage.text",
    ),
}

# Names of platforms are abbreviated in the tenant names of databases and indexes.
STORED_NAMES = ("storage.models",)

PURE = ("ingestion.layout", "ingestion.chunking", "ingestion.extraction", "ingestion.compute_program")
IMPURE = ("aiosqlite", "alembic", "asyncio", "psycopg", "sqlalchemy", "sqlite3", "sqlmodel")


def is_within(name: str, homes: tuple[str, ...]) -> bool:
    """True if a dotted name is one of the homes, which may be patterns, or is inside one."""
    return any(fnmatchcase(name, home) or fnmatchcase(name, f"{home}.*") for home in homes)


def of_ours(module: Module) -> list[str]:
    """Return a module's imports of our own packages."""
    return [name for name in sorted(module.imports) if name.split(".")[0] in PROGRAMS]


def narrowest(name: str) -> str:
    """Return the row of ``MAY_IMPORT`` that applies to a module."""
    return max((row for row in MAY_IMPORT if is_within(name, (row,))), key=len)


def layer_of(name: str, package: str) -> tuple[int, str] | None:
    """Return (layer, room) of a module or a name in it; None outside the package's rooms."""
    if not name.startswith(f"{package}."):
        return None
    room = name.removeprefix(f"{package}.").split(".")[0]
    found = [number for number, layer in enumerate(LAYERS[package]) if room in layer]
    return (found[0], room) if found else None


def upward(package: str) -> list[str]:
    """Return imports within a package that do not lead to a lower layer."""
    found = []
    for module in modules():
        here = layer_of(module.name, package)
        for name in of_ours(module) if here else []:
            there = layer_of(name, package)
            if here and there and there != here and there[0] >= here[0]:
                found.append(f"{module} imports {name}")
    return found


@pytest.mark.parametrize("package", LAYERS)
def test_a_room_sees_only_the_layers_below_it(package: str) -> None:
    """Shows that a package can be read bottom up; rooms of one layer do not know each other."""
    found = upward(package)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("package", LAYERS)
def test_every_module_is_in_a_known_room(package: str) -> None:
    """Shows that every room has a layer."""
    astray = [
        str(module)
        for module in modules()
        if module.name.startswith(f"{package}.") and layer_of(module.name, package) is None
    ]
    assert not astray, "\n".join(astray)


@for_each("room", MAY_IMPORT)
def test_a_room_imports_only_its_allowed_packages(room: str) -> None:
    """Shows that core imports no adapter, an adapter no other one, and neither index engine the other."""
    found = [
        f"{module} imports {name}"
        for module in modules()
        if is_within(module.name, (room,)) and narrowest(module.name) == room
        for name in of_ours(module)
        if not is_within(name, MAY_IMPORT[room])
    ]
    assert not found, "\n".join(found)


@for_each("platform", [one.name for one in PLATFORMS])
def test_only_the_list_of_platforms_names_one(platform: str) -> None:
    """Shows that nothing outside its folder imports a platform, or compares or looks up its name."""
    folder = f"bot.platforms.{platform}"
    others = [one for one in modules() if not is_within(one.name, (folder, "bot.platforms.registry"))]
    found = [f"{one} imports {name}" for one in others for name in of_ours(one) if is_within(name, (folder,))]
    found += [
        f"{module}:{node.lineno} depends on the name"
        for module in others
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Compare | ast.Dict | ast.Match | ast.Subscript)
        and module.name not in STORED_NAMES
        and any(isinstance(one, ast.Constant) and one.value == platform for one in decisive(node))
    ]
    assert not found, "\n".join(found)


def decisive(node: ast.Compare | ast.Dict | ast.Match | ast.Subscript) -> list[ast.AST | None]:
    """Return the parts of a comparison, table or look-up that decide what happens."""
    if isinstance(node, ast.Compare):
        return [part for one in (node.left, *node.comparators) for part in ast.walk(one)]
    if isinstance(node, ast.Match):
        return [part for case in node.cases for part in ast.walk(case.pattern)]
    return list(node.keys) if isinstance(node, ast.Dict) else [node.slice]


def test_only_the_composition_root_knows_ingestion() -> None:
    """Shows that answering and ingestion share storage, and meet only in the composition root."""
    found = [
        f"{module} imports {name}"
        for module in modules()
        if is_within(module.name, ("bot",)) and not is_within(module.name, (*ROOTS, "bot.settings"))
        for name in of_ours(module)
        if is_within(name, ("ingestion",))
    ]
    assert not found, "\n".join(found)


def test_no_module_imports_the_pdf_childs_modules() -> None:
    """Shows that only the fork server loads the child's modules, by name."""
    found = [
        f"{module} imports {name}"
        for module in modules()
        if not is_within(module.name, ("storage.pdf.child",))
        for name in of_ours(module)
        if is_within(name, ("storage.pdf.child",))
    ]
    assert not found, "\n".join(found)


def test_computing_modules_are_pure() -> None:
    """Shows that layout, chunking and extraction depend only on their input: no SQL, no event loop."""
    found = [
        f"{module} imports {name}"
        for module in modules()
        if is_within(module.name, PURE)
        for name in sorted(module.imports)
        if is_within(name, IMPURE)
    ]
    assert not found, "\n".join(found)


def test_no_modules_import_in_a_circle() -> None:
    """Shows that there are no import cycles, including type-only imports."""
    names = {module.name for module in modules()}
    graph = {
        module.name: {owner for name in of_ours(module) if (owner := owner_of(name, names)) != module.name}
        for module in modules()
        if module.path.name != "__init__.py"
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]), pytrace=False)


def owner_of(name: str, names: set[str]) -> str:
    """Return the module that an imported name is or belongs to."""
    return name if name in names else name.rpartition(".")[0]


@for_each("sdk", HOMES)
def test_an_sdk_lives_in_its_home_and_nowhere_else(sdk: str) -> None:
    """Shows that replacing an SDK affects only the modules listed here."""
    guests = [
        f"{module} imports {name}"
        for module in modules()
        for name in sorted(module.imports)
        if is_within(name, (sdk,)) and not is_within(module.name, HOMES[sdk])
    ]
    assert not guests, "\n".join(guests)


def test_only_the_command_line_imports_the_composition_root() -> None:
    """Shows that no other module depends on the composition root."""
    users = [
        str(module)
        for module in modules()
        if not is_within(module.name, ROOTS) and any(is_within(name, ROOTS) for name in module.imports)
    ]
    assert not users, "\n".join(users)


def test_the_service_never_loads_the_pdf_library_itself() -> None:
    """Shows that importing the whole program does not load PyMuPDF: only the sandboxed child opens PDFs."""
    program = "import sys, bot.app, bot.cli.main; print('pymupdf' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False", done.stderr


def test_relative_imports_are_seen_too() -> None:
    """Shows that the rules cannot be circumvented by another form of import."""
    text = "from . import base\nfrom ..models import Chunk\nimport pymupdf.utils as u\n"
    module = Module(Path("storage/index/x.py"), "storage.index.x", text, ast.parse(text))
    assert module.imports == {"storage.index.base", "storage.models.Chunk", "pymupdf.utils"}
