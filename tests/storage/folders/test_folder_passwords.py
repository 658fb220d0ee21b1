"""Folder passwords: which contents they open, and how references are resolved."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlmodel import col

from storage.chat.channels import Channels
from storage.folders.folder_passwords import FolderPasswords, resolve_reference
from storage.folders.folders import Folders
from storage.models import ChannelKey, Platform
from storage.pdf.passwords import Passwords
from storage.settings import reference_error
from storage.sql.database import Database
from storage.sql.tables import BlobRow, DocumentRow, VersionRow

ALL = select(col(BlobRow.sha256))


class House:
    """Folders with contents in one channel."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.folders = Folders(database)

    async def folder(self, location: str, *references: str) -> int:
        """Map a folder with these password references, replacing earlier ones."""
        channel = await Channels(self.database).ensure(ChannelKey(Platform.LOCAL, "", "hr"))
        made = await self.folders.ensure(
            channel.id, location, watched=True, origin="map", passwords=references
        )
        return made.id

    async def put(self, folder: int, sha256: str) -> None:
        """Add a document with this content."""
        async with self.database.transaction() as session:
            document = DocumentRow(channel_id=1, folder_id=folder, file=f"{sha256}.pdf")
            session.add_all([document, await session.get(BlobRow, sha256) or BlobRow(sha256=sha256, size=1)])
            await session.flush()
            session.add(VersionRow(document_id=document.id, number=1, sha256=sha256))


@pytest.fixture
def house(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """No folders; working directory and environment are isolated."""
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two", "three"):
        monkeypatch.setenv(f"PDF_{name.upper()}", name)
    return House(database)


def plain(passwords: Passwords) -> list[str]:
    """Return the passwords in plain text."""
    return [one.get_secret_value() for one in passwords.found]


async def test_folder_passwords_apply_to_the_folders_contents(house: House) -> None:
    """Covers two folders, a content in both, an unknown one, and a deleted one."""
    first = await house.folder("/srv/a", "env:PDF_ONE", "env:PDF_TWO")
    second = await house.folder("/srv/b", "env:PDF_THREE", "env:PDF_TWO", "env:PDF_FOUR")
    for folder, contents in ((first, "ac"), (second, "bc"), (await house.folder("/srv/c"), "d")):
        for sha256 in contents:
            await house.put(folder, sha256)
    keyring = FolderPasswords(house.database)
    assert plain(await keyring.passwords_of("a")) == ["one", "two"]
    assert plain(await keyring.passwords_of("b")) == ["three", "two"]
    assert plain(await keyring.passwords_of("c")) == ["one", "two", "three"]
    assert [(await keyring.passwords_of(one)).missing for one in "abcdx"] == [0, 1, 1, 0, 0]
    assert plain(await keyring.passwords_of("d")) == plain(await keyring.passwords_of("x")) == []
    await house.folders.unmap([second])
    assert plain(await keyring.passwords_of("b")) == []
    assert plain(await keyring.passwords_of("c")) == ["one", "two"]


async def test_passwords_for_all_folders_come_last(house: House) -> None:
    """Covers folders with and without a list of their own."""
    await house.put(await house.folder("/srv/a", "env:PDF_ONE"), "a")
    await house.put(await house.folder("/srv/b"), "b")
    keyring = FolderPasswords(house.database, ("env:PDF_TWO", "env:PDF_ONE"))
    assert plain(await keyring.passwords_of("a")) == ["one", "two"]
    assert plain(await keyring.passwords_of("b")) == ["two", "one"]


async def test_only_untried_passwords_trigger_a_new_attempt(house: House, tmp_path: Path) -> None:
    """Covers lists that are new, tried, longer, shorter and unchanged, and a file with a new secret."""
    secret = tmp_path / "secret"
    secret.write_text("four")
    await house.put(await house.folder("/srv/a"), "a")
    keyring = FolderPasswords(house.database)
    assert await keyring.openable(ALL) == []
    await house.folder("/srv/a", f"file:{secret}")
    assert await keyring.openable(ALL) == ["a"]
    keyring.note_wrong("a", await keyring.passwords_of("a"))
    assert await keyring.openable(ALL) == []
    await house.folder("/srv/a", f"file:{secret}", "env:PDF_ONE")
    both = await keyring.passwords_of("a")
    assert await keyring.openable(ALL) == ["a"]
    keyring.note_wrong("a", both)
    await house.folder("/srv/a", "env:PDF_ONE")
    assert await keyring.openable(ALL) == []
    await house.folder("/srv/a", f"file:{secret}")
    assert await keyring.openable(ALL) == []
    secret.write_text("five")
    assert await keyring.openable(ALL) == ["a"]


async def test_a_reference_is_resolved_on_every_use(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment precedes ``.env``; of a file the first line counts, without blanks or BOM."""
    (tmp_path / ".env").write_text("PDF_ONE=other\nPDF_DOTENV='from a file'\n")
    secret = tmp_path / "secret"
    found = {"env:PDF_ONE": "one", "env:PDF_DOTENV": "from a file", f"file:{secret}": "Schlüssel"}
    secret.write_bytes("\ufeff  Schlüssel \r\nanother line\n".encode())
    looked = {one: resolve_reference(one) for one in found}
    assert {one: value.get_secret_value() for one, value in looked.items() if value} == found
    monkeypatch.delenv("PDF_ONE")
    assert (value := resolve_reference("env:PDF_ONE"))
    assert value.get_secret_value() == "other"


def test_an_unresolvable_reference_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Covers missing, empty, binary and special files; a pipe without a writer does not block."""
    monkeypatch.setenv("PDF_EMPTY", "")
    monkeypatch.setitem(os.environb, b"PDF_BYTES", b"\xff\xfe")
    os.mkfifo(tmp_path / "pipe")
    for name, data in (("empty", b"\nsecond"), ("bytes", b"\xff"), ("nul", b"a\0b")):
        (tmp_path / name).write_bytes(data)
    names = ("missing", "empty", "bytes", "nul", "pipe", "")
    assert [resolve_reference(f"file:{tmp_path}/{name}") for name in names] == [None] * len(names)
    assert [resolve_reference(f"env:PDF_{name}") for name in ("NOT_THERE", "EMPTY", "BYTES")] == [None] * 3
    assert resolve_reference("file:/dev/zero") is None


@pytest.mark.parametrize(
    "reference",
    ["hush", "", "env:", "env:MY-PDF", "env:1", "ENV:PDF", "file:secret", "file:~/s", "file:/a\0b"],
)
def test_an_invalid_reference_is_refused_without_quoting_it(reference: str) -> None:
    """Shows that the message gives the syntax and does not leak a pasted password."""
    fault = reference_error(reference)
    assert fault
    assert "env:NAME" in fault
    assert "file:/absolute/path" in fault
    assert "hush" not in fault
