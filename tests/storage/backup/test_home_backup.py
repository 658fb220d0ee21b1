"""Backup and restore of a home on SQLite and Postgres; damaged backups are detected and named."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from engines.s3 import RealS3
from harness.empty_homes import make_sqlite
from pydantic import SecretStr
from sqlalchemy import Text, cast, delete, select

from storage.backup.destination import BackupDestination
from storage.backup.home_backup import HomeBackup
from storage.backup.home_restore import HomeRestore, read_backup
from storage.backup.manifest import BackupManifest
from storage.chat.channels import Channels
from storage.errors import BackupError, DamagedBackup, NewerDatabase, SettingsError
from storage.files.store_owner import OWNER_FILE
from storage.models import ChannelKey, Chunk, Page, Platform
from storage.settings import StorageSettings
from storage.sql.tables import (
    BlobRow,
    CachedVectorRow,
    CitationRow,
    DocumentRow,
    FactRow,
    FolderRow,
    InboxRow,
    OutboxRow,
    PublicationRow,
    ReadingRow,
    SQLModel,
    VersionRow,
)
from storage.stores import Stores, open_stores, verify_blob_store

PDF = b"%PDF-1.7 a manual of quaggas"
SHA256 = hashlib.sha256(PDF).hexdigest()


def settings_of(home: Path, url: str | None = None, blobs: str | None = None) -> StorageSettings:
    """Return the settings of a home; the database and the blob store may be elsewhere."""
    secrets = {"database_url": url, "blobs": blobs}
    return StorageSettings(
        home=home, **{name: SecretStr(one) if one else None for name, one in secrets.items()}
    )


async def fill(stores: Stores) -> None:
    """Add a live document, an answered question, keys and an admin's file."""
    home, database = stores.settings.home_path, stores.database
    channel = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"))
    temporary = stores.blobs.new_temporary()
    temporary.write_bytes(PDF)
    stores.blobs.adopt(temporary, SHA256)
    async with database.transaction() as session:
        session.add(BlobRow(sha256=SHA256, size=len(PDF)))
        folder = FolderRow(channel_id=channel.id, location=str(home / "inbox" / "it"), watched=True)
        session.add(folder)
        await session.flush()
        document = DocumentRow(channel_id=channel.id, folder_id=folder.id, file="quagga.pdf")
        reading = ReadingRow(sha256=SHA256, generation="1", rung="full", state="done", pages=1, chunks=1)
        session.add_all([document, reading])
        await session.flush()
        versions = [VersionRow(document_id=document.id, number=number, sha256=SHA256) for number in (1, 2)]
        session.add_all(versions)
        await session.flush()
        live = PublicationRow(
            channel_id=channel.id, version_id=versions[0].id, reading_id=reading.id, state="live"
        )
        boxes = [[0.1, 0.2, 0.3, 0.4]]
        cited = CitationRow(
            channel_id=channel.id, version_id=versions[0].id, page=1, quote="“Größe”\n", boxes=boxes
        )
        values: dict[str, Any] = {"platform": "slack", "channel_id": channel.id, "thread": "1", "text": "?"}
        asked = InboxRow(event_key="e", message_key="m", address={"user": "U1"}, **values)
        session.add_all([live, cited, asked, CachedVectorRow(space="s", text_hash="0", vector=b"\0\xff")])
        session.add(FactRow(name="index", value="embedded"))
        await session.flush()
        session.add(OutboxRow(inbox_id=asked.id, state="delivered", answer=None))
        # The newest id is deleted: an old link may still name it, so it must not be reused.
        await session.execute(delete(VersionRow).where(VersionRow.id == versions[1].id))
    page, chunk = Page(1, "", 10, 10, "A quagga.", ()), Chunk(0, "A quagga.", 3, (), (), ((0, 1),))
    await stores.files.write(reading.id, [page], [chunk], np.ones((1, 3), np.float32))
    (home / "inbox" / "it").mkdir(parents=True)
    (home / "inbox" / "it" / "quagga.pdf").write_bytes(PDF)
    (home / "token_keys.json").write_text('{"keys": [1]}')
    (home / "console_secret").write_text("secret")
    (home / "footnote.toml").write_text('DATABASE_URL = "sqlite:////old.db"\nFOOTNOTE_LINK_DAYS = 3\n')
    (home / "images").mkdir()
    (home / "images" / "drawn.png").write_text("drawn anew")


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Stores]:
    """A populated home on SQLite."""
    make_sqlite(tmp_path / "old")
    async with open_stores(settings_of(tmp_path / "old")) as stores:
        await fill(stores)
        yield stores


async def back_up(stores: Stores, folder: Path) -> BackupDestination:
    """Back up into a folder and return its place."""
    await HomeBackup(stores, BackupDestination(str(folder)), lambda *_: None).write()
    return BackupDestination(str(folder))


async def restore(place: BackupDestination, settings: StorageSettings) -> HomeRestore:
    """Restore into an empty home."""
    restoring = HomeRestore(settings, place, lambda *_: None)
    await restoring.require_empty()
    await restoring.restore(read_backup(place))
    return restoring


async def rows_of(stores: Stores) -> dict[str, list[Any]]:
    """Return every row of every table, JSON as text because SQL NULL and JSON null differ."""
    found = {}
    async with stores.database.snapshot() as session:
        for table in SQLModel.metadata.sorted_tables:
            shown = [cast(of, Text) if "JSON" in repr(of.type) else of for of in table.columns]
            found[table.name] = sorted(map(tuple, await session.execute(select(*shown))), key=repr)
    return found


def files_of(home: Path, *places: str) -> dict[str, bytes]:
    """Return the contents of all files that a backup covers, or of those below `places`."""
    kept = places or ("blobs", "readings", "inbox", "token_keys.json")
    return {
        str(file.relative_to(home)): file.read_bytes()
        for file in home.rglob("*")
        if file.is_file() and file.relative_to(home).parts[0] in kept and file.stat().st_size
    }


async def test_a_home_moves_between_databases(home: Stores, tmp_path: Path, database_url: str) -> None:
    """Rows and files are identical, folders moved with the home, and no id is reused."""
    there = settings_of(tmp_path / "new", database_url)
    await restore(await back_up(home, tmp_path / "1"), there)
    async with open_stores(there) as stores:
        moved = (await stores.folders.watched())[0]
        assert moved.location == str(tmp_path / "new" / "inbox" / "it")
        async with stores.database.transaction() as session:
            document = (await session.scalars(select(DocumentRow))).one()
            version = VersionRow(document_id=document.id, number=2, sha256=SHA256)
            session.add(version)
            await session.flush()
            assert version.id == 3
            await session.rollback()
        second = await back_up(stores, tmp_path / "2")
    again = settings_of(tmp_path / "again")
    await restore(second, again)
    async with open_stores(again) as stores:
        wanted, found = await rows_of(home), await rows_of(stores)
    wanted["fact"].remove(("index", "embedded"))
    for rows in (wanted, found):
        del rows["folder"]
    assert found == wanted
    assert files_of(tmp_path / "again") == files_of(tmp_path / "old")
    assert not (tmp_path / "again" / "footnote.toml").exists()
    assert not (tmp_path / "again" / "console_secret").exists()
    said = (tmp_path / "new" / "footnote.toml.restored").read_text()
    assert said == (tmp_path / "old" / "footnote.toml").read_text()
    assert not (tmp_path / "again" / "images").exists()


async def test_a_second_backup_copies_only_what_changed(home: Stores, tmp_path: Path) -> None:
    """A changed file adds one content, and its old content is dropped."""
    await back_up(home, tmp_path / "1")
    (home.settings.home_path / "token_keys.json").write_text('{"keys": [1, 2]}')
    again = await HomeBackup(home, BackupDestination(str(tmp_path / "1")), lambda *_: None).write()
    assert (again.copied, again.dropped, again.left_out) == (1, 1, {})


async def test_a_corrupt_pdf_of_the_home_is_left_out_and_named(home: Stores, tmp_path: Path) -> None:
    """Shows that a backup never stores bytes that do not match their hash."""
    blob = home.blobs.path(SHA256)
    blob.chmod(0o600)
    blob.write_bytes(PDF[:-1] + b"!")
    report = await HomeBackup(home, BackupDestination(str(tmp_path / "1")), lambda *_: None).write()
    assert list(report.left_out) == [f"blobs/{SHA256[:2]}/{SHA256}"]


def lose_manifest(folder: Path) -> None:
    """Delete the manifest, as if the backup had been killed."""
    (folder / "manifest.json").unlink()


def change_manifest(folder: Path) -> None:
    """Change one digit of a size in the manifest."""
    file = folder / "manifest.json"
    file.write_text(file.read_text().replace('"size": ', '"size": 1', 1))


def content_of(folder: Path, name: str) -> Path:
    """Return the path of a home file's content in a backup."""
    manifest = BackupManifest.of_json((folder / "manifest.json").read_bytes())
    sha256 = (manifest.files | manifest.tables)[name].sha256
    return folder / "contents" / sha256[:2] / sha256


def flip_a_byte(folder: Path) -> None:
    """Flip one byte of the keys."""
    file = content_of(folder, "token_keys.json")
    file.write_bytes(file.read_bytes().replace(b"1", b"2"))


def flip_a_row(folder: Path) -> None:
    """Flip one byte of a table."""
    file = content_of(folder, "citation")
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def lose_a_content(folder: Path) -> None:
    """Delete the content of the keys."""
    content_of(folder, "token_keys.json").unlink()


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lose_manifest, "no finished backup"),
        (change_manifest, "manifest.json"),
        (flip_a_byte, "token_keys.json"),
        (flip_a_row, "the table citation"),
        (lose_a_content, "token_keys.json"),
    ],
)
async def test_damage_is_detected_and_named(home: Stores, tmp_path: Path, damage: Any, named: str) -> None:
    """Shows that a corrupt backup is never restored, whichever byte is wrong."""
    await back_up(home, tmp_path / "1")
    damage(tmp_path / "1")
    with pytest.raises(DamagedBackup, match=named):
        await restore(BackupDestination(str(tmp_path / "1")), settings_of(tmp_path / "new"))


@pytest.mark.engine("s3")
async def test_a_home_moves_into_object_storage_and_back(
    home: Stores, tmp_path: Path, s3_server: RealS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Restores into S3, backs up twice from a machine without local copies, and restores to disk again."""
    for name, value in s3_server.settings.items():
        monkeypatch.setenv(name.upper(), value)
    bucket = s3_server.place()
    there = settings_of(tmp_path / "there", blobs=bucket.location)
    await restore(await back_up(home, tmp_path / "1"), there)
    assert sorted(key.partition("/")[0] for key in bucket.keys()) == [
        "blobs",
        "footnote-home.txt",
        "readings",
    ]
    url = f"sqlite:///{tmp_path / 'there' / 'footnote.db'}"
    async with open_stores(settings_of(tmp_path / "beside", url, bucket.location)) as stores:
        await verify_blob_store(stores)
        place = await back_up(stores, tmp_path / "2")
        assert stores.blobs.cached() == {SHA256}
        await asyncio.to_thread(stores.blobs.evict, [SHA256])
        await back_up(stores, tmp_path / "2")
        assert stores.blobs.cached() == set(), "what the backup has is not fetched again"
    again = settings_of(tmp_path / "again")
    await restore(place, again)
    assert files_of(tmp_path / "again", "blobs", "readings") == files_of(
        tmp_path / "old", "blobs", "readings"
    )
    async with open_stores(again) as stores:
        await verify_blob_store(stores)
    with pytest.raises(SettingsError, match="FOOTNOTE_BLOBS is not empty"):
        await restore(place, settings_of(tmp_path / "late", blobs=bucket.location))


async def test_restoring_needs_an_empty_home(home: Stores, tmp_path: Path) -> None:
    """Refused without --force; with it the home matches the backup and old files are moved aside."""
    place = await back_up(home, tmp_path / "1")
    with pytest.raises(SettingsError, match="--force"):
        await restore(place, home.settings)
    url = make_sqlite(tmp_path / "database")
    other = settings_of(tmp_path / "other", url)
    async with open_stores(other) as stores:
        await fill(stores)
        (tmp_path / "other" / "glossary.toml").write_text("")
        (tmp_path / "other" / "inbox" / "it" / "since.pdf").write_bytes(PDF)
    with pytest.raises(SettingsError, match="--force"):
        await restore(place, settings_of(tmp_path / "new", url))
    report = await HomeRestore(other, place, lambda *_: None).restore(read_backup(place))
    assert report.replaced is not None
    aside = Path(report.replaced)
    assert (aside / "inbox" / "it" / "since.pdf").read_bytes() == PDF
    assert (aside / "glossary.toml").exists()
    async with open_stores(other) as stores:
        assert (await rows_of(stores))["citation"] == (await rows_of(home))["citation"]
    assert not (tmp_path / "other" / "glossary.toml").exists()


async def test_a_blob_store_of_another_home_is_never_restored_into(home: Stores, tmp_path: Path) -> None:
    """Refused even with --force; an interrupted restore into our own store can be repeated."""
    place = await back_up(home, tmp_path / "1")
    ours = settings_of(tmp_path / "ours", blobs=f"file://{tmp_path}/store")
    await restore(place, ours)
    kept = files_of(tmp_path / "store", "blobs", "readings", OWNER_FILE)
    other = settings_of(tmp_path / "other", blobs=f"file://{tmp_path}/store")
    with pytest.raises(SettingsError, match="another home"):
        await HomeRestore(other, place, lambda *_: None).restore(read_backup(place))
    assert files_of(tmp_path / "store", "blobs", "readings", OWNER_FILE) == kept
    assert not (tmp_path / "other").exists()
    manifest = read_backup(place)
    lost = replace(
        manifest, tables={name: replace(one, sha256="0" * 64) for name, one in manifest.tables.items()}
    )
    with pytest.raises(DamagedBackup):
        await HomeRestore(ours, place, lambda *_: None).restore(lost)
    await HomeRestore(ours, place, lambda *_: None).restore(manifest)
    async with open_stores(ours) as stores:
        await verify_blob_store(stores)


async def test_moved_blobs_are_encrypted_with_the_key_of_their_home(home: Stores, tmp_path: Path) -> None:
    """Verified from a machine without local copies: the key of the backup's home encrypted nothing there."""
    first = settings_of(tmp_path / "first", blobs=f"file://{tmp_path}/store")
    await restore(await back_up(home, tmp_path / "1"), first)
    async with open_stores(first) as stores:
        await verify_blob_store(stores)
        place = await back_up(stores, tmp_path / "2")
    second = f"file://{tmp_path}/another"
    await restore(place, settings_of(tmp_path / "second", blobs=second))
    url = f"sqlite:///{tmp_path / 'second' / 'footnote.db'}"
    async with open_stores(settings_of(tmp_path / "beside", url, second)) as stores:
        await verify_blob_store(stores)
        async with stores.database.snapshot() as session:
            reading = (await session.scalars(select(ReadingRow))).one().id
        assert await stores.files.page_texts(reading) == ["A quagga."]


def rewrite(folder: Path, **changes: Any) -> None:
    """Change fields of the manifest and give it a valid hash."""
    file = folder / "manifest.json"
    file.write_bytes(replace(BackupManifest.of_json(file.read_bytes()), **changes).to_json())


OUTSIDE = {
    "/etc/cron.d/job",
    "../out",
    "inbox/../../out",
    "inbox//out",
    "inbox/./out",
    "inbox/a\0b",
    "inbox",
    "blobs/../../out",
    f"blobs/00/{'0' * 64}",
    f"readings/00/{uuid4()}/../../../../out",
    f"readings/00/{uuid4()}/..",
    "console_secret",
    "footnote.db",
    "index/x",
    "serve.json",
    ".hidden/x.py",
    "footnote.toml/x",
}


@pytest.mark.parametrize("kind", ["files", "tables", "last_ids", "content"])
async def test_a_manifest_with_paths_outside_the_home_is_refused(
    home: Stores, tmp_path: Path, kind: str
) -> None:
    """No file is written anywhere, although the hash of the manifest is valid."""
    await back_up(home, tmp_path / "1")
    manifest = read_backup(BackupDestination(str(tmp_path / "1")))
    ((_, entry), *_) = manifest.files.items()
    before = sorted(tmp_path.rglob("*"))
    for name in OUTSIDE - SQLModel.metadata.tables.keys() if kind in ("tables", "last_ids") else OUTSIDE:
        files, tables = manifest.files | {name: entry}, manifest.tables | {name: entry}
        changes: dict[str, Any] = {
            "files": {"files": files},
            "tables": {"tables": tables},
            "last_ids": {"last_ids": {name: 1}},
            "content": {"files": manifest.files | {"glossary.toml": replace(entry, sha256=name)}},
        }[kind]
        rewrite(tmp_path / "1", **changes)
        with pytest.raises(DamagedBackup, match="not a Footnote backup"):
            read_backup(BackupDestination(str(tmp_path / "1")))
        rewrite(tmp_path / "1", files=manifest.files, tables=manifest.tables, last_ids=manifest.last_ids)
    assert sorted(tmp_path.rglob("*")) == before


async def test_a_backup_of_another_home_is_not_replaced(home: Stores, tmp_path: Path) -> None:
    """A second home may not overwrite the first one's backup, except with `replace`."""
    await back_up(home, tmp_path / "1")
    kept = files_of(tmp_path / "1", "manifest.json", "contents")
    make_sqlite(tmp_path / "second")
    async with open_stores(settings_of(tmp_path / "second")) as stores:
        with pytest.raises(SettingsError, match="another home"):
            await back_up(stores, tmp_path / "1")
        assert files_of(tmp_path / "1", "manifest.json", "contents") == kept
        await HomeBackup(stores, BackupDestination(str(tmp_path / "1")), lambda *_: None).write(replace=True)


async def test_a_backup_of_a_newer_release_is_refused(home: Stores, tmp_path: Path) -> None:
    await back_up(home, tmp_path / "1")
    rewrite(tmp_path / "1", revision="9999")
    with pytest.raises(NewerDatabase):
        await restore(BackupDestination(str(tmp_path / "1")), settings_of(tmp_path / "new"))


async def test_an_unwritable_backup_location_is_reported(home: Stores, tmp_path: Path) -> None:
    """A place that is a file, or the home itself, is refused with a message."""
    (tmp_path / "1").write_text("")
    with pytest.raises(BackupError, match="cannot be"):
        await back_up(home, tmp_path / "1")
    with pytest.raises(SettingsError, match="another folder"):
        await back_up(home, home.settings.home_path / "backups")
