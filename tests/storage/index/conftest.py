"""Fixtures that run the index tests on both engines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from engines.weaviate import RealWeaviate
from samples.indexes import new_tenant

from storage.index.base import Index
from storage.index.embedded.index import EmbeddedIndex
from storage.models import TenantName

ENGINES = ["embedded", pytest.param("weaviate", marks=pytest.mark.engine("weaviate"))]


@pytest.fixture(params=ENGINES)
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Index]:
    """An index, on each engine in turn."""
    if request.param == "embedded":
        opened: Index = EmbeddedIndex(tmp_path / "index", 10)
    else:
        server: RealWeaviate = request.getfixturevalue("weaviate")
        opened = await server.connect()
    yield opened
    await opened.aclose()


@pytest.fixture
async def embedded(tmp_path: Path) -> AsyncIterator[EmbeddedIndex]:
    opened = EmbeddedIndex(tmp_path / "index", 10)
    yield opened
    await opened.aclose()


@pytest.fixture
async def tenant(index: Index) -> TenantName:
    """A new tenant."""
    name = new_tenant()
    await index.ensure_tenant(name)
    return name
