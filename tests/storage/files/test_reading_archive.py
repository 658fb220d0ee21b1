"""What lies among the copies of readings on a machine."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from storage.errors import BlobsUnavailable
from storage.files.object_store import ObjectStore
from storage.files.reading_archive import ReadingArchive


def test_a_foreign_entry_is_no_copy_and_a_disk_that_fails_is_an_outage(tmp_path: Path) -> None:
    """Shows that what systems leave in folders, and a folder that is none, end no machine's work."""
    store = ObjectStore(f"file://{tmp_path}/store", BlobsUnavailable, "the blob store")
    archive, reading = ReadingArchive(store, tmp_path / "readings", 1 << 20), uuid4()
    shard = tmp_path / "readings" / reading.hex[:2]
    (shard / str(reading)).mkdir(parents=True)
    (shard / "lost+found").mkdir()
    assert archive.copies() == {reading}
    (tmp_path / "readings" / ("00" if shard.name != "00" else "01")).touch()
    with pytest.raises(BlobsUnavailable, match="Not a directory"):
        archive.copies()
