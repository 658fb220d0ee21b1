"""Evidence of rounds with faults, kept in ``build/soak-faults/``, since their homes are deleted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from sqlalchemy import select

from ingestion.sources.base import FileStat
from storage.sql.tables import DocumentRow, FolderRow, PublicationRow, ReadingRow, VersionRow
from tools.soak.checks.audit import Audit

LOGS = ("life.log", "kills.log")
TABLES = (FolderRow, DocumentRow, VersionRow, ReadingRow, PublicationRow)


async def keep_evidence(audit: Audit, folder: Path) -> None:
    """Copy the logs, and write out the rows, the state of the files, and the words of each content."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for log in LOGS:
        if (audit.world.home / log).exists():
            shutil.copy(audit.world.home / log, folder / log)
    lines = [*audit.faults, *audit.witness.faults, *_contents(audit), *_files(audit)]
    async with audit.database.snapshot() as session:
        for table in TABLES:
            lines += [f"{row.__tablename__} {row!r}" for row in await session.scalars(select(table))]
    (folder / "rows.txt").write_text("\n".join(lines) + "\n")


def _contents(audit: Audit) -> Iterator[str]:
    for paper in audit.world.versions.values():
        yield f"content {paper.sha256} {paper.word} {paper.version}"


def _files(audit: Audit) -> Iterator[str]:
    for place, papers in audit.world.papers.items():
        for file, paper in papers.items():
            seen = _seen(audit.world.folder(place) / file)
            yield f"file {place}/{file} should be {paper.sha256}, is {seen}"


def _seen(path: Path) -> str:
    if not path.exists():
        return "not there"
    return f"{sha256(path.read_bytes()).hexdigest()} {FileStat.of(path.stat())}"
