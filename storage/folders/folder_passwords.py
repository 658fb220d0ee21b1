"""Passwords of locked PDFs, given by admins: a folder's passwords apply to the contents in it.

SQL stores references only. Secrets are never stored, and are read again each time, because they may change
while the program runs.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG

from pydantic import SecretStr
from sqlalchemy import ColumnElement, Select, select
from sqlmodel import col

from storage.pdf.passwords import Passwords
from storage.settings import read_dotenv
from storage.sql.database import Database
from storage.sql.tables import DocumentRow, FolderRow, VersionRow

_log = logging.getLogger(__name__)

# No more of a file is read.
MAX_SECRET_BYTES = 4096


def resolve_reference(reference: str) -> SecretStr | None:
    """Return the secret behind a valid reference; None if it is missing or not UTF-8.

    A file's secret is its first line, stripped. Blocks on the disk.
    """
    kind, _, name = reference.partition(":")
    found = _variable(name) if kind == "env" else _first_line(Path(name))
    return SecretStr(found) if found and "\0" not in found else None


def _variable(name: str) -> str:
    """Return a variable of the environment, or else of ``.env``."""
    with suppress(UnicodeDecodeError):
        return os.environb.get(name.encode(), b"").decode() or read_dotenv().get(name, "")
    return ""


def _first_line(path: Path) -> str:
    """Return the first line of a regular file; never wait for a pipe or a device."""
    with suppress(OSError, UnicodeDecodeError):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            is_file = S_ISREG(os.fstat(handle).st_mode)
            text = file.read(MAX_SECRET_BYTES).decode("utf-8-sig") if is_file else ""
        return text.partition("\n")[0].strip()
    return ""


class FolderPasswords:
    """Keyring of one home; remembers in memory which passwords failed for which contents.

    Calls raise DatabaseUnavailable if the database does not work; then nothing is changed.
    """

    def __init__(self, database: Database, everywhere: Sequence[str] = ()) -> None:
        """Add the references ``everywhere`` to those of every folder."""
        self._database = database
        self._everywhere = everywhere
        self._key = os.urandom(32)
        # Content -> keyed digests of the passwords that failed.
        self._wrong: defaultdict[str, set[bytes]] = defaultdict(set)
        # References without a secret that were already logged.
        self._lost: set[str] = set()

    async def passwords_of(self, sha256: str) -> Passwords:
        """Return the passwords of all folders that now contain a content."""
        return (await self._find(col(VersionRow.sha256) == sha256)).get(sha256, Passwords())

    async def passwords_in(self, folder_id: int) -> Passwords:
        """Return the passwords of a folder, including those of all folders."""
        query = select(col(FolderRow.passwords)).where(col(FolderRow.id) == folder_id)
        async with self._database.snapshot() as session:
            named = await session.scalar(query)
        return (await asyncio.to_thread(self._follow, {"": list(named or ())}))[""]

    def has_untried(self, sha256: str, given: Passwords) -> bool:
        """True if one of these has not failed for the content yet."""
        return bool(self._untried({sha256: given}))

    def note_wrong(self, sha256: str, tried: Passwords) -> None:
        """Record that none of these opens the content."""
        self._wrong[sha256] |= self._digests(tried.found)

    async def openable(self, contents: Select[str]) -> list[str]:
        """Return the sha256 of those contents that have a password which has not failed yet."""
        found = await self._find(col(VersionRow.sha256).in_(contents))
        return await asyncio.to_thread(self._untried, found)

    def _untried(self, found: dict[str, Passwords]) -> list[str]:
        return [
            one for one, given in found.items() if self._digests(given.found) - self._wrong.get(one, set())
        ]

    async def _find(self, is_meant: ColumnElement[bool]) -> dict[str, Passwords]:
        """Return the passwords by content, for contents of documents that are not deleted."""
        query = (
            select(col(VersionRow.sha256), col(FolderRow.passwords))
            .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
            .join(FolderRow, col(FolderRow.id) == DocumentRow.folder_id)
            .where(col(DocumentRow.state) != "deleted", is_meant)
            .order_by(col(FolderRow.id))
        )
        async with self._database.snapshot() as session:
            rows = (await session.execute(query)).all()
        references: defaultdict[str, list[str]] = defaultdict(list)
        for sha256, named in rows:
            references[sha256] += named or ()
        return await asyncio.to_thread(self._follow, references)

    def _follow(self, references: dict[str, list[str]]) -> dict[str, Passwords]:
        """Resolve each reference once, and list each password once."""
        resolve = cache(self._resolve)
        given = {}
        for one, named in references.items():
            looked = [resolve(reference) for reference in dict.fromkeys([*named, *self._everywhere])]
            found = dict.fromkeys(secret for secret in looked if secret is not None)
            given[one] = Passwords(tuple(found), looked.count(None))
        return given

    def _resolve(self, reference: str) -> SecretStr | None:
        found = resolve_reference(reference)
        if found is None and reference not in self._lost:
            _log.warning("no password found: reference=%s", reference)
            self._lost.add(reference)
        return found

    def _digests(self, passwords: Iterable[SecretStr]) -> set[bytes]:
        return {blake2b(one.get_secret_value().encode(), key=self._key).digest() for one in passwords}
