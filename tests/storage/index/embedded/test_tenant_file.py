"""A corrupt tenant file is detected and never used for answers."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from samples.indexes import SPACE, axis, chunk, new_tenant

from storage.errors import IndexUnavailable, UnknownTenant
from storage.index.base import IndexedChunk, SearchFilter
from storage.index.embedded.index import EmbeddedIndex
from storage.models import TenantName

ALL = SearchFilter()
WORDS = [f"lantern{number}" for number in range(60)]


async def filled(folder: Path) -> tuple[TenantName, UUID]:
    """Return a closed tenant with one publication of sixty chunks."""
    tenant, publication, index = new_tenant(), uuid4(), EmbeddedIndex(folder, 10)
    await index.ensure_tenant(tenant)
    await index.write(tenant, [_chunk(publication, number) for number in range(len(WORDS))])
    await index.aclose()
    return tenant, publication


def _chunk(publication: UUID, number: int) -> IndexedChunk:
    text = f"{WORDS[number]} and marzipan " * 20
    return chunk(publication, number, text, vector=axis(number % 8))


def cut(file: Path) -> None:
    """Truncate the file to half its size."""
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 2)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def overwrite(file: Path) -> None:
    """Replace the file with garbage."""
    file.write_bytes(b"no database" * 1000)


def flip_text(file: Path) -> None:
    """Change one letter wherever a chunk's text is stored; no database page becomes invalid."""
    file.write_bytes(file.read_bytes().replace(b"lantern7 and", b"lantern8 and"))


DAMAGE = [cut, empty, overwrite, flip_text]


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_damaged_file_refuses_questions_until_it_is_restored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None]
) -> None:
    """Shows that no question is answered from it, nor from the half-filled new file."""
    tenant, publication = await filled(tmp_path)
    damage(tmp_path / f"{tenant}.sqlite3")
    index = EmbeddedIndex(tmp_path, 10)
    with caplog.at_level(logging.ERROR), pytest.raises(IndexUnavailable):
        await index.search_keywords(tenant, ["lantern7", "marzipan"], ALL, 60)
    assert [record.message.split()[:2] for record in caplog.records] == [
        [f"tenant={tenant}", "outcome=corrupt:"]
    ]
    assert await index.corrupt_tenants() == {tenant}
    with pytest.raises(UnknownTenant):
        await index.publications(tenant)
    await index.ensure_tenant(tenant)
    await index.write(tenant, [_chunk(publication, number) for number in range(len(WORDS))])
    with pytest.raises(IndexUnavailable):
        await index.search_keywords(tenant, ["lantern7"], ALL, 5)
    with pytest.raises(IndexUnavailable):
        await index.document_frequencies(tenant, ["lantern7"])
    await index.mark_rebuilt(tenant)
    assert [hit.ordinal for hit in await index.search_keywords(tenant, ["lantern7"], ALL, 5)] == [7]
    assert await index.corrupt_tenants() == set()
    await index.aclose()


async def test_flipped_bytes_are_refused_or_found_by_the_full_check(tmp_path: Path) -> None:
    """Shows that a chunk is served as written or not at all, wherever bytes are flipped."""
    tenant, publication = await filled(tmp_path / "sound")
    sound = (tmp_path / "sound" / f"{tenant}.sqlite3").read_bytes()
    index = EmbeddedIndex(tmp_path / "index", 10)
    file = tmp_path / "index" / f"{tenant}.sqlite3"
    expected = {number: _chunk(publication, number).text for number in range(len(WORDS))}
    noticed = 0
    for place in range(50, len(sound) - 64, len(sound) // 60):
        await index.drop_tenant(tenant)
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(
            sound[:place] + bytes(255 - one for one in sound[place : place + 64]) + sound[place + 64 :]
        )
        try:
            await index.verify(tenant)
            hits = await index.search_vectors(tenant, SPACE, axis(0), ALL, 60)
            assert {hit.ordinal: hit.text for hit in hits} == expected
            assert len(await index.search_keywords(tenant, ["marzipan"], ALL, 60)) == len(WORDS)
        except IndexUnavailable:
            noticed += 1
            assert await index.corrupt_tenants() == {tenant}
    assert noticed > 30
    await index.aclose()


async def test_damage_at_runtime_affects_its_tenant_only(tmp_path: Path) -> None:
    """Shows that other tenants still answer, and that damage is noticed at the next question."""
    index = EmbeddedIndex(tmp_path, 10)
    (one, _), (other, _) = await filled(tmp_path), await filled(tmp_path)
    for tenant in (one, other):
        assert await index.search_keywords(tenant, ["lantern7"], ALL, 5)
    flip_text(tmp_path / f"{one}.sqlite3")
    with pytest.raises(IndexUnavailable):
        await index.search_keywords(one, ["lantern7", "marzipan"], ALL, 60)
    assert await index.corrupt_tenants() == {one}
    assert [hit.ordinal for hit in await index.search_keywords(other, ["lantern7"], ALL, 5)] == [7]
    await index.aclose()


async def test_a_stale_journal_does_not_affect_a_new_file(tmp_path: Path) -> None:
    """Shows that the journal of a deleted file is not applied to its replacement."""
    tenant, _ = await filled(tmp_path)
    file = tmp_path / f"{tenant}.sqlite3"
    shutil.copy(file, file.with_name(f"{file.name}-wal"))
    file.unlink()
    index = EmbeddedIndex(tmp_path, 10)
    await index.ensure_tenant(tenant)
    assert await index.publications(tenant) == {}
    assert await index.corrupt_tenants() == set()
    await index.aclose()
