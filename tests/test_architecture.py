"""Who may import whom, and where each SDK lives: the drawing of docs/walk.md, held by the code."""

from __future__ import annotations

import ast
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from sources import Module, modules

ROOTS = ("bot.engines", "bot.searching", "bot.service", "bot.serving", "bot.cli")
"""The composition root and the command line in front of it: they know every concrete class."""

HOMES = {
    "slack_bolt": ("bot.slack",),
    "slack_sdk": ("bot.slack",),
    "botbuilder": ("bot.teams",),
    "botframework": ("bot.teams",),
    "jwt": ("bot.teams",),
    "aiohttp": ("bot.rerankers.endpoint", "bot.slack", "bot.teams", "bot.web", *ROOTS),
    "jinja2": ("bot.web",),
    "openai": (
        "bot.model_endpoint",
        "ingestion.read.vision_endpoint",
        "storage.embedding_endpoint",
    ),
    "fsspec": ("ingestion.sources.generic", "ingestion.sources.protocols", "ingestion.sources.s3"),
    "s3fs": ("ingestion.sources.s3",),
    "botocore": ("ingestion.sources.s3",),
    "paramiko": ("ingestion.sources.sftp",),
    "smbclient": ("ingestion.sources.smb",),
    "smbprotocol": ("ingestion.sources.smb",),
    "webdav4": ("ingestion.sources.webdav",),
    "apscheduler": ("ingestion.work.schedule",),
    "weaviate": ("storage.index.weaviate_*",),
    "httpx": ("ingestion.sources.webdav", "storage.index.weaviate_*"),
    "pymupdf": ("storage.pdf",),
    "fitz": (),
    "tiktoken": ("storage.tokens",),
    "pymupdf4llm": ("storage.pdf.layout_child",),
    "onnxruntime": ("bot.rerankers.cross_encoder", "storage.embedder", "storage.pdf"),
    "cv2": ("storage.pdf.ocr_engine", "storage.pdf.ocr_ink"),
    "rapidocr": ("storage.pdf.ocr_engine",),
    "py3langid": ("ingestion.read.language",),
    "tokenizers": ("bot.rerankers.cross_encoder", "storage.embedder", "storage.pieces"),
    "Stemmer": ("storage.analyzer",),
    "sqlmodel": ("storage",),
    "sqlalchemy": ("storage",),
    "alembic": ("storage.migrations",),
    "aiosqlite": ("storage.sql.steady",),
    "psycopg": (),
    "pydantic_settings": ("storage.settings",),
    "dotenv": ("storage.settings",),
}

MAY_IMPORT = {
    "storage": ("storage",),
    "ingestion": ("ingestion", "storage"),
    "ingestion.sources": ("ingestion.errors", "ingestion.sources", "storage"),
    "ingestion.work": ("ingestion.errors", "ingestion.sources", "ingestion.work", "storage"),
    "ingestion.wish": (
        "ingestion.settings",
        "ingestion.sources",
        "ingestion.wish",
        "ingestion.work",
        "storage",
    ),
    "ingestion.watch": (
        "ingestion.errors",
        "ingestion.settings",
        "ingestion.sources",
        "ingestion.watch",
        "ingestion.wish",
        "ingestion.work",
        "storage",
    ),
    "ingestion.read": ("ingestion.read", "ingestion.settings", "ingestion.work", "storage"),
    "ingestion.publish": ("ingestion.publish", "ingestion.settings", "ingestion.work", "storage"),
    "bot": ("bot", "storage"),
    "bot.core": (
        "bot.core",
        "storage.analyzer",
        "storage.clock",
        "storage.errors",
        "storage.figure_models",
        "storage.geometry",
        "storage.glossary_models",
        "storage.index.contract",
        "storage.memory_models",
        "storage.metadata_models",
        "storage.models",
        "storage.notice_models",
        "storage.quotables",
        "storage.tokens",
        "storage.units",
    ),
    "bot.rerankers": ("bot.core", "bot.model_calls", "bot.rerankers", "storage"),
    "bot.slack": ("bot.core", "bot.settings", "bot.slack", "storage"),
    "bot.teams": ("bot.core", "bot.settings", "bot.teams", "storage"),
    "bot.web": ("bot.core", "bot.settings", "bot.web", "storage"),
}


def is_within(name: str, homes: tuple[str, ...]) -> bool:
    """Whether a dotted name is one of the homes, which may be patterns, or lies below one."""
    return any(fnmatchcase(name, home) or fnmatchcase(name, f"{home}.*") for home in homes)


def strays(room: str, allowed: tuple[str, ...]) -> list[str]:
    """Imports among our own packages that leave what a room may see."""
    return [
        f"{module} imports {name}"
        for module in modules()
        if is_within(module.name, (room,)) and not is_within(module.name, ROOTS)
        for name in sorted(module.imports())
        if name.split(".")[0] in ("bot", "ingestion", "storage") and not is_within(name, allowed)
    ]


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_sees_only_the_rooms_below_it(room: str) -> None:
    """Shows that bot and ingestion meet only in storage, core knows no adapter, and doors no other door."""
    found = strays(room, MAY_IMPORT[room])
    assert not found, "\n".join(found)


@pytest.mark.parametrize("sdk", HOMES)
def test_an_sdk_lives_in_its_home_and_nowhere_else(sdk: str) -> None:
    """Shows that exchanging an SDK touches the few modules named here."""
    guests = [
        f"{module} imports {name}"
        for module in modules()
        for name in sorted(module.imports())
        if is_within(name, (sdk,)) and not is_within(module.name, HOMES[sdk])
    ]
    assert not guests, "\n".join(guests)


def test_only_the_command_line_reaches_for_the_composition_root() -> None:
    """Shows that nothing inside depends on how the program is put together."""
    users = [
        str(module)
        for module in modules()
        if not is_within(module.name, ROOTS) and any(is_within(name, ROOTS) for name in module.imports())
    ]
    assert not users, "\n".join(users)


def test_the_service_never_loads_the_pdf_library_into_its_own_process() -> None:
    """Shows that importing the whole program leaves PyMuPDF out: only the limited child opens PDFs."""
    program = "import sys, bot.service, bot.cli.main; print('pymupdf' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False", done.stderr


def test_relative_imports_are_seen_too() -> None:
    """Shows that the rules above cannot be walked around by writing an import another way."""
    text = "from . import contract\nfrom ..models import Chunk\nimport pymupdf.utils as u\n"
    module = Module(Path("storage/index/x.py"), "storage.index.x", text, ast.parse(text))
    assert module.imports() == {"storage.index.contract", "storage.models.Chunk", "pymupdf.utils"}
