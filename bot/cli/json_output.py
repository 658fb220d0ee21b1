"""JSON output for other programs: one object per line, keys in fixed order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.core.models import Answer, AnswerFigure, Citation, Passage
from storage.folders.folder_status import DeletedDocument, FolderStatus
from storage.models import METADATA_FIELDS, Box, Channel, DocumentStatus
from storage.web_pages.page_store import WebPage


def answer_line(answer: Answer, *, id: str | int | None, question: str, channel: str) -> dict[str, Any]:
    """Return the line of ``footnote ask --json``; "standalone" and "filter" only if they are set."""
    return {
        "id": id,
        "question": question,
        "channel": channel,
        "state": answer.state.value,
        "text": answer.text,
        "citations": [_citation(citation) for citation in answer.citations],
        "figures": [_figure(figure) for figure in answer.figures],
        "passages": [_passage(passage) for passage in answer.passages],
        "nearest": asdict(answer.nearest) if answer.nearest else None,
        "unread": [asdict(unread) for unread in answer.unread],
        "milliseconds": asdict(answer.milliseconds),
        **({"standalone": answer.standalone} if answer.standalone else {}),
        **({"filter": asdict(answer.filter)} if answer.filter else {}),
    }


def _citation(citation: Citation) -> dict[str, Any]:
    return {
        "number": citation.number,
        "kind": citation.kind,
        "title": citation.title,
        "file": citation.file,
        "page": citation.page or None,
        "section": list(citation.section),
        "quote": citation.quote,
        "boxes": [_box(box) for box in citation.boxes],
        "url": citation.url,
        **({"host": citation.host, "fetched": citation.fetched} if citation.host else {}),
    }


def _figure(figure: AnswerFigure) -> dict[str, Any]:
    return {
        "file": figure.file,
        "page": figure.page,
        "caption": figure.caption,
        "box": _box(figure.box),
        "url": figure.url,
    }


def _passage(passage: Passage) -> dict[str, Any]:
    return {
        "file": passage.publication.file,
        "page": passage.first_page,
        "last_page": passage.last_page,
        "score": round(passage.score, 6),
        "bm25": passage.bm25,
        "vector": passage.vector,
    }


def _box(box: Box) -> list[float]:
    return [round(edge, 5) for edge in box]


def document_line(document: DocumentStatus) -> dict[str, Any]:
    """Return the line of ``footnote documents --json``.

    Unambiguous dates are normalized to a comparable day.
    """
    metadata = document.metadata
    return {
        "channel": document.channel,
        "document": str(document.document),
        "version": document.version,
        "file": document.file,
        "title": document.title,
        "pages": document.pages,
        "state": document.state,
        "rung": document.rung.value if document.rung else None,
        "reason": document.reason,
        "metadata": {
            key: metadata[key].day or metadata[key].value if key in metadata else None
            for key in METADATA_FIELDS
        },
    }


def deleted_line(document: DeletedDocument, channel: str, until: datetime) -> dict[str, Any]:
    """Return the line of ``footnote documents --deleted --json``."""
    return {
        "channel": channel,
        "document": str(document.id),
        "version": document.sha256,
        "file": document.file,
        "location": document.location,
        "deleted_at": document.deleted_at.isoformat(timespec="seconds"),
        "until": until.isoformat(timespec="seconds"),
    }


def folder_line(folder: FolderStatus) -> dict[str, Any]:
    """Return the line of ``footnote folders --json``."""
    return {
        "folder": folder.id,
        "location": folder.location,
        "channel": folder.channel_name,
        "tenant": folder.channel,
        "origin": folder.origin,
        "watched": folder.watched,
        "documents": folder.documents,
        "deleted": folder.deleted,
        "problem": folder.problem,
        "pending_deletions": [file for _, file in folder.pending_deletions],
        "unsupported_files": dict(folder.unsupported_files),
    }


def inbox_line(inbox: Path, strangers: Mapping[str, str]) -> dict[str, Any]:
    """Return the line of ``footnote folders --json`` for the inbox itself, with its loose files."""
    return {
        "folder": None,
        "location": str(inbox),
        "channel": None,
        "tenant": None,
        "origin": "inbox",
        "watched": True,
        "documents": 0,
        "deleted": 0,
        "problem": None,
        "pending_deletions": [],
        "unsupported_files": dict(strangers),
    }


def channel_line(channel: Channel, glossary: int) -> dict[str, Any]:
    """Return the line of ``footnote channels --json``; ``glossary``: number of the channel's terms."""
    return {
        "channel": channel.name,
        "tenant": str(channel.tenant),
        "platform": channel.platform,
        "glossary": glossary,
    }


def source_line(domain: str, page: WebPage) -> dict[str, Any]:
    """Return the line of ``footnote sources --json``."""
    return {
        "url": page.url,
        "domain": domain,
        "state": page.state.value,
        "fetched": page.fetched_at.isoformat(timespec="seconds") if page.fetched_at else None,
        "words": page.words,
        "error": page.error,
    }


def dump(line: dict[str, Any]) -> str:
    """Return one line of JSON, with non-ASCII characters unescaped."""
    return json.dumps(line, ensure_ascii=False, allow_nan=False)
