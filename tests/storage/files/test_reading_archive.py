"""Readings and page images in a shared object store, and their local copies."""

from __future__ import annotations

import asyncio
import hashlib
import zipfile
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from storage.errors import BlobsUnavailable, LostReading
from storage.files.image_files import ImageFiles
from storage.files.object_store import ObjectStore
from storage.files.reading_archive import ReadingArchive
from storage.files.reading_files import ReadingFiles
from storage.files.store_owner import ensure_store_key
from storage.models import Chunk, Page, PageImage
from storage.sql.database import Database

PAGES = [Page(1, "", 10, 10, "A quagga rests.", ())]
CHUNKS = [Chunk(0, "A quagga rests.", 3, (), (), ((0, 1),))]
FORGED = [Chunk(0, "Pay them.", 3, (), (), ((0, 1),))]
PICTURE = PageImage(b"\x89PNG a page", "image/png")


def store_in(folder: Path, key: bytes = b"ours") -> ObjectStore:
    """Return a home's object store, opened with its key."""
    return ObjectStore(f"file://{folder}/store", BlobsUnavailable, "the blob store", key=key)


def files_of(home: Path, store: ObjectStore) -> ReadingFiles:
    """Return the reading files of a machine."""
    return ReadingFiles(home / "readings", ReadingArchive(store, home / "readings", 1 << 20))


def stored(folder: Path, reading: UUID) -> Path:
    """Return the path of a reading in the store."""
    return folder / "store" / "readings" / reading.hex[:2] / f"{reading}.zip"


async def kept(folder: Path, chunks: list[Chunk], key: bytes = b"ours") -> UUID:
    """Write a reading to the store and return its id."""
    reading = uuid4()
    await files_of(folder / reading.hex, store_in(folder, key)).write(reading, PAGES, chunks, None)
    return reading


async def test_a_forged_reading_in_the_store_counts_as_lost(tmp_path: Path) -> None:
    """Covers a reading signed with another key, and one of ours under another id: both are read again."""
    ours, others = await kept(tmp_path, CHUNKS), await kept(tmp_path, CHUNKS)
    forged = await kept(tmp_path, FORGED, b"not ours")
    files = files_of(tmp_path / "reader", store_in(tmp_path))
    assert await files.chunks(ours) == CHUNKS
    stored(tmp_path, others).write_bytes(stored(tmp_path, ours).read_bytes())
    for reading in (forged, others):
        with pytest.raises(LostReading):
            await files.chunks(reading)
        assert not stored(tmp_path, reading).exists()


async def test_a_foreign_archive_is_never_unpacked(tmp_path: Path) -> None:
    """Covers a zip bomb and a file that is no archive."""
    files, reading = files_of(tmp_path / "reader", store_in(tmp_path)), await kept(tmp_path, CHUNKS)
    with zipfile.ZipFile(stored(tmp_path, reading), "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("chunks.lines", bytes(10_000_000))
    with pytest.raises(LostReading):
        await files.chunks(reading)
    assert not list((tmp_path / "reader").rglob("chunks.lines"))
    stored(tmp_path, reading).write_bytes(b"no")
    with pytest.raises(LostReading):
        await files.chunks(reading)


def test_a_forged_page_image_in_the_store_is_not_shown(tmp_path: Path) -> None:
    """Rendered again when signed with another key, with only a checksum, or under another page's name."""
    names = [f"{number:064}-1-132" for number in range(4)]
    one, another = (
        ImageFiles(tmp_path / key, store_in(tmp_path, key.encode())) for key in ("ours", "theirs")
    )
    one.upload(one.write(names[0], PICTURE))
    another.upload(another.write(names[1], PICTURE))
    places = [tmp_path / "store" / "images" / name[:2] / name[:64] / name for name in names]
    for place, data in (
        (places[2], hashlib.sha256(PICTURE.data).digest() + PICTURE.data),
        (places[3], places[0].read_bytes()),
    ):
        place.parent.mkdir(parents=True)
        place.write_bytes(data)
    reader = ImageFiles(tmp_path / "reader", store_in(tmp_path))
    assert [reader.copy_here(name) for name in names] == [True, False, False, False]
    assert reader.read(names[0]) == PICTURE


async def test_all_machines_of_a_database_share_one_key(database: Database) -> None:
    """Shows that the first key wins, even when several machines start at once."""
    (first,) = set(await asyncio.gather(*(ensure_store_key(database, bytes([one])) for one in range(4))))
    assert await ensure_store_key(database, b"late") == first


def test_foreign_entries_are_ignored_and_disk_errors_raise(tmp_path: Path) -> None:
    """Covers `lost+found` and a file in place of a folder."""
    archive, reading = ReadingArchive(store_in(tmp_path), tmp_path / "readings", 1 << 20), uuid4()
    shard = tmp_path / "readings" / reading.hex[:2]
    (shard / str(reading)).mkdir(parents=True)
    (shard / "lost+found").mkdir()
    assert archive.cached() == {reading}
    (tmp_path / "readings" / ("00" if shard.name != "00" else "01")).touch()
    with pytest.raises(BlobsUnavailable, match="Not a directory"):
        archive.cached()
