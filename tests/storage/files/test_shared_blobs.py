"""PDFs and readings of several machines in one S3 bucket."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from engines.s3 import STORE_KEY, Bucket, RealS3

from storage.errors import BlobsUnavailable, DatabaseUnavailable, LostReading
from storage.files.blobs import Blobs
from storage.files.image_files import MAX_SINGLE_LISTINGS
from storage.files.local_cache import SHARDS
from storage.files.object_store import ObjectStore
from storage.files.reading_archive import ReadingArchive
from storage.files.reading_files import ReadingFiles
from storage.files.store_owner import require_own_store
from storage.models import Chunk, Page, PageImage
from storage.settings import AwsSettings
from storage.sql.database import Database

pytestmark = pytest.mark.engine("s3")

CONTENTS = [b"%PDF-1.7 " + bytes([number]) * 400_000 for number in range(4)]
NAMES = [hashlib.sha256(one).hexdigest() for one in CONTENTS]
PAGES = [Page(1, "", 10, 10, "A quagga rests.", ())]
CHUNKS = [Chunk(0, "A quagga rests.", 3, (), (), ((0, 1),))]
PICTURE = PageImage(b"\x89PNG a page", "image/png")
LONG_AGO = time.time() - 3600


@dataclass
class Machine:
    """The folders of one machine in front of a shared store."""

    blobs: Blobs
    files: ReadingFiles

    def adopt(self, number: int) -> Path:
        """Store a content as an ingestion does."""
        temporary = self.blobs.new_temporary()
        temporary.write_bytes(CONTENTS[number])
        return self.blobs.adopt(temporary, NAMES[number])


def machine(home: Path, store: ObjectStore, cache_bytes: int = 1 << 30) -> Machine:
    """Return a machine with an empty home."""
    archive = ReadingArchive(store, home / "readings", cache_bytes)
    blobs = Blobs(home / "blobs", store=store, cache_bytes=cache_bytes)
    return Machine(blobs, ReadingFiles(home / "readings", archive))


@pytest.fixture
def bucket(s3_server: RealS3) -> Bucket:
    """An empty bucket."""
    return s3_server.place()


@pytest.fixture
def first(tmp_path: Path, bucket: Bucket) -> Machine:
    """The machine that ingests folders."""
    return machine(tmp_path / "first", bucket.store())


@pytest.fixture
def second(tmp_path: Path, bucket: Bucket) -> Machine:
    """A second machine."""
    return machine(tmp_path / "second", bucket.store())


async def written(on: Machine) -> UUID:
    """Write a reading and return its id."""
    reading = uuid4()
    await on.files.write(reading, PAGES, CHUNKS, None)
    return reading


async def test_another_machine_opens_what_one_stored(first: Machine, second: Machine) -> None:
    """A PDF and a reading are downloaded once for concurrent readers, and listed."""
    first.adopt(0)
    reading = await written(first)
    places = await asyncio.gather(*(second.blobs.fetch(NAMES[0]) for _ in range(4)))
    assert {one.read_bytes() for one in places} == {CONTENTS[0]}
    assert places[0].stat().st_mode & 0o777 == 0o400
    assert await second.files.chunks(reading) == CHUNKS
    assert (await second.files.page(reading, 1)).text == PAGES[0].text
    assert {name: one.size for name, one in second.blobs.listed(SHARDS).items()} == {
        NAMES[0]: len(CONTENTS[0])
    }
    assert set(await second.files.listed([reading.hex[:2]])) == {str(reading)}
    assert await second.files.is_whole(reading, pages=1, chunks=1, has_vectors=False)


async def test_corrupt_objects_are_never_opened(first: Machine, second: Machine, bucket: Bucket) -> None:
    """Damage is detected by hash; the corrupt object is deleted, so that it counts as missing."""
    first.adopt(0)
    reading = await written(first)
    kept = f"readings/{reading.hex[:2]}/{reading}.zip"
    bucket.damage(f"blobs/{NAMES[0][:2]}/{NAMES[0]}")
    bucket.damage(kept)
    with pytest.raises(BlobsUnavailable, match="corrupt"):
        await second.blobs.fetch(NAMES[0])
    with pytest.raises(LostReading):
        await second.files.chunks(reading)
    assert bucket.keys() == []
    assert not second.blobs.exists(NAMES[0])
    assert first.blobs.reupload(NAMES[0])
    assert await first.files.is_whole(reading, pages=1, chunks=1, has_vectors=False)
    assert (await second.blobs.fetch(NAMES[0])).read_bytes() == CONTENTS[0]
    assert await second.files.chunks(reading) == CHUNKS


async def test_a_corrupt_local_copy_is_downloaded_again(first: Machine, second: Machine) -> None:
    """Shows that the store is asked before a reading counts as lost."""
    reading = await written(first)
    await second.files.chunks(reading)
    (lines,) = second.files.root.rglob("chunks.lines")
    lines.write_bytes(lines.read_bytes().replace(b"quagga", b"quahga"))
    assert await second.files.chunks(reading) == CHUNKS


async def test_a_partial_local_reading_is_replaced_from_the_store(first: Machine, second: Machine) -> None:
    """Shows that the leftovers of a dead worker are replaced by the finished reading of another."""
    reading = uuid4()
    second.files.write_here(reading, PAGES, CHUNKS[:0], None)
    await first.files.write(reading, PAGES, CHUNKS, None)
    assert await second.files.chunks(reading) == CHUNKS


async def test_local_copies_are_evicted_unless_the_store_lacks_them(
    first: Machine, tmp_path: Path, bucket: Bucket
) -> None:
    """Least recently used copies are evicted first; a content that the bucket lost is uploaded again."""
    for number in range(4):
        first.adopt(number)
    small = machine(tmp_path / "small", bucket.store(), 900_000)
    for number in (0, 1):
        os.utime(await small.blobs.fetch(NAMES[number]), (LONG_AGO + number,) * 2)
    bucket.server.keys(bucket.bucket)
    bucket.store().remove([f"blobs/{NAMES[0][:2]}/{NAMES[0]}"])
    await small.blobs.fetch(NAMES[2])
    assert small.blobs.cached() == {NAMES[1], NAMES[2]}
    assert first.blobs.exists(NAMES[0])
    await small.blobs.fetch(NAMES[1])
    await small.blobs.fetch(NAMES[3])
    assert small.blobs.cached() == {NAMES[1], NAMES[2], NAMES[3]}, "what is in use stays"


async def test_an_unavailable_store_raises_and_local_copies_open(
    first: Machine, tmp_path: Path, bucket: Bucket
) -> None:
    """The error hides the account, and a second call fails at once."""
    first.adopt(0)
    reading = await written(first)
    nowhere = AwsSettings(**{**bucket.server.settings, "aws_endpoint_url": "http://127.0.0.1:9"})
    store = ObjectStore(bucket.location, BlobsUnavailable, "the blob store", nowhere, is_interactive=True)
    cut_off = machine(tmp_path / "first", store)
    with pytest.raises(BlobsUnavailable, match="the blob store cannot be") as caught:
        await cut_off.blobs.fetch(NAMES[1])
    assert bucket.bucket not in str(caught.value)
    with pytest.raises(BlobsUnavailable, match="not responding"):
        cut_off.adopt(2)
    assert (await cut_off.blobs.fetch(NAMES[0])).read_bytes() == CONTENTS[0]
    assert await cut_off.files.chunks(reading) == CHUNKS


async def test_removing_deletes_from_the_store_too(first: Machine, bucket: Bucket) -> None:
    """Deletes in bulk and with the local copies; missing objects are no error."""
    for number in range(3):
        first.adopt(number)
    reading = await written(first)
    first.blobs.remove_all([*NAMES[:2], NAMES[3]])
    first.blobs.remove(NAMES[2])
    await first.files.remove(reading)
    assert bucket.keys() == []
    assert first.blobs.cached() == set()
    with pytest.raises(BlobsUnavailable, match="missing from object storage"):
        await first.blobs.fetch(NAMES[0])


async def drawn(on: Machine, number: int) -> Path:
    """Render a page, upload it and return its path."""
    image = on.blobs.images.write(f"{NAMES[number]}-1-132", PICTURE)
    await asyncio.to_thread(on.blobs.upload_image, image)
    return image


async def test_a_page_image_is_shared_between_machines(
    first: Machine, second: Machine, bucket: Bucket
) -> None:
    """Shows the image without the PDF, unless it is corrupt or the PDF is local."""
    first.adopt(0)
    name = (await drawn(first, 0)).stem
    assert not await first.blobs.copy_image(name), "it can be drawn"
    assert await second.blobs.copy_image(name)
    assert second.blobs.images.read(name) == PICTURE
    assert second.blobs.images.read(f"{NAMES[0]}-2-132") is None
    assert not await second.blobs.copy_image(f"{NAMES[0]}-2-132")
    assert not second.blobs.path(NAMES[0]).exists()
    second.blobs.evict([NAMES[0]])
    bucket.damage(f"images/{name[:2]}/{NAMES[0]}/{name}")
    assert not await second.blobs.copy_image(name)
    assert second.blobs.cached() == set()


async def test_page_images_are_deleted_with_their_content(
    first: Machine, second: Machine, bucket: Bucket
) -> None:
    """Covers a removal, an image uploaded after it, and one whose uploader died."""
    for number in range(3):
        first.adopt(number)
        await drawn(first, number)
    assert first.blobs.images_of(NAMES[:2]) == 2
    first.blobs.remove_all(NAMES[:2])
    assert {key.split("/")[2][:64] for key in bucket.keys()} == {NAMES[2]}
    await drawn(second, 0)
    assert second.blobs.images_of(NAMES[:1]) == 1, "here, until the next tick"
    first.blobs.images.upload(second.blobs.images.write(f"{NAMES[1]}-1-132", PICTURE))
    held = first.blobs.listed(SHARDS)
    assert first.blobs.images.stored_contents(SHARDS) == {NAMES[1], NAMES[2]}
    first.blobs.drop_stray_images(SHARDS, held)
    assert first.blobs.images.stored_contents(SHARDS) == {NAMES[2]}
    first.blobs.remove(NAMES[2])
    assert bucket.keys() == []


async def test_page_images_of_many_contents_are_deleted_in_bulk(first: Machine, bucket: Bucket) -> None:
    """Covers more than are listed one by one; images of other contents stay."""
    gone = [hashlib.sha256(bytes([number])).hexdigest() for number in range(MAX_SINGLE_LISTINGS + 1)]
    for sha256 in (*gone[:3], NAMES[0]):
        first.blobs.images.upload(first.blobs.images.write(f"{sha256}-1-132", PICTURE))
    assert first.blobs.images_of(gone) == 3
    first.blobs.remove_all(gone)
    assert bucket.keys() == [f"images/{NAMES[0][:2]}/{NAMES[0]}/{NAMES[0]}-1-132"]


async def test_drafts_are_deleted_with_their_content(tmp_path: Path) -> None:
    """Covers a mounted share whose uploader died."""
    store = ObjectStore(f"file://{tmp_path / 'share'}", BlobsUnavailable, "the blob store", key=STORE_KEY)
    one = machine(tmp_path / "one", store)
    one.adopt(0)
    await drawn(one, 0)
    (sent,) = (tmp_path / "share" / "images").rglob("*-132")
    sent.with_name(f".{sent.name}.draft").write_bytes(b"half")
    one.blobs.remove_all(NAMES[:1])
    assert not list((tmp_path / "share").glob("*/*/*"))


async def test_a_failed_image_upload_does_not_mark_the_store_down(tmp_path: Path) -> None:
    """Shows that PDFs are still fetched from a store that rejects images."""
    share = tmp_path / "share"
    store = ObjectStore(
        f"file://{share}", BlobsUnavailable, "the blob store", is_interactive=True, key=STORE_KEY
    )
    machine(tmp_path / "first", store).adopt(0)
    (share / "images").touch()  # instead of the folder of images
    one = machine(tmp_path / "one", store)
    with pytest.raises(BlobsUnavailable):
        await drawn(one, 0)
    assert (await one.blobs.fetch(NAMES[0])).read_bytes() == CONTENTS[0]


async def test_a_missing_bucket_is_an_outage(database: Database, bucket: Bucket) -> None:
    """Shows that a mistyped bucket is not taken for an empty one and leaves the home unchanged."""
    location = bucket.location.replace(bucket.bucket, f"{bucket.bucket}x")
    mistyped = ObjectStore(location, BlobsUnavailable, "the blob store", bucket.account)
    with pytest.raises(BlobsUnavailable, match="no such bucket"):
        await require_own_store(database, mistyped)
    await require_own_store(database, None)


async def test_no_machine_adds_a_blob_while_one_removes(
    tmp_path: Path, database: Database, database_url: str, bucket: Bucket
) -> None:
    """Covers the advisory lock on PostgreSQL; with SQLite there is only one machine."""
    place = tmp_path / "one" if database_url.startswith("sqlite") else None
    homes = [place or tmp_path / name for name in ("one", "two")]
    removing, arriving = (
        Blobs(home / "blobs", store=bucket.store(), lock=database.content_lock) for home in homes
    )
    order = []

    async def arrive() -> None:
        async with arriving.adding():
            order.append("arrived")

    async with removing.removing():
        waiting = asyncio.create_task(arrive())
        await asyncio.sleep(0.2)
        order.append("removed")
    await waiting
    async with arriving.adding(), removing.adding():
        order.append("together")
    assert order == ["removed", "arrived", "together"]


@pytest.mark.engine("postgres")
async def test_waiting_for_the_content_lock_times_out(postgres_url: str) -> None:
    """Shows that a machine which hangs during a removal delays others by seconds only."""
    holding, waiting = await Database.open(postgres_url), await Database.open(postgres_url, busy_seconds=0.2)
    try:
        async with holding.content_lock(exclusive=True):
            with pytest.raises(DatabaseUnavailable):
                async with waiting.content_lock(exclusive=False):
                    pass
        async with waiting.content_lock(exclusive=False):
            pass
    finally:
        await holding.aclose()
        await waiting.aclose()
