"""Fixtures of the storage tests: database tests run on SQLite and on Postgres."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from harness.empty_homes import make_sqlite

from storage.sql.database import Database


@pytest.fixture
def sqlite_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a new SQLite database; with tables if the test uses ``database``."""
    if "database" in request.fixturenames:
        return make_sqlite(tmp_path / "home")
    return f"sqlite:///{tmp_path}/home/footnote.db"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.engine("postgres"))])
def database_url(request: pytest.FixtureRequest) -> str:
    """URL of an empty database, on each engine in turn."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A new database with the current schema."""
    opened = await Database.open(database_url)
    yield opened
    await opened.aclose()
