"""Fixtures of the storage room's tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.database import Database


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """Where a fresh SQLite database of this test lies."""
    return f"sqlite:///{tmp_path}/home/footnote.db"


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A fresh database with the current schema."""
    opened = await Database.open(database_url)
    yield opened
    await opened.aclose()
