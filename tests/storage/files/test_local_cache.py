"""Local blob cache: eviction spares copies in use."""

from __future__ import annotations

import os
import time
from pathlib import Path

from storage.files.local_cache import LRUFileCache


def test_a_copy_opened_during_eviction_stays(tmp_path: Path) -> None:
    """Shows that a copy touched while the store is queried is skipped in favour of the next."""
    names = ["aa1", "aa2", "aa3"]
    for age, name in enumerate(names):
        copy = tmp_path / "aa" / name
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(bytes(100))
        os.utime(copy, (time.time() - 3600 + age,) * 2)

    def secure(name: str) -> None:
        """Answer for the store while the oldest copy is opened."""
        if name == "aa1":
            cache.touch(name)

    cache = LRUFileCache(tmp_path, 250, secure)
    cache.evict(100)
    assert cache.names() == {"aa1", "aa3"}
