"""Contract of index engines, run on the embedded index and on a real Weaviate server."""

from __future__ import annotations

from typing import Any, cast
from uuid import uuid4

import pytest
from samples.indexes import SPACE, axis, chunk, new_tenant

from storage.errors import IncompletePublication, InvalidTenant, UnknownTenant
from storage.index.base import Hit, Index, SearchFilter
from storage.models import TenantName
from storage.text.analyzer import analyze

ALL = SearchFilter()
# The vector space of another embedder.
OTHER = "endpoint_0123456789abcdef"


def places(hits: list[Hit]) -> list[int]:
    """Return the ordinals of hits, in their order."""
    return [hit.ordinal for hit in hits]


async def test_a_tenant_exists_from_creation_to_drop(index: Index) -> None:
    """Shows that creating and dropping are idempotent."""
    name = new_tenant()
    assert not await index.has_tenant(name)
    await index.ensure_tenant(name)
    await index.ensure_tenant(name)
    assert await index.has_tenant(name)
    await index.drop_tenant(name)
    await index.drop_tenant(name)
    assert not await index.has_tenant(name)


async def test_a_recreated_tenant_is_empty(index: Index, tenant: TenantName) -> None:
    """Shows that a dropped tenant leaves no data, not even a matrix in memory."""
    publication = uuid4()
    await index.write(tenant, [chunk(publication, 0, "backups", vector=axis(0))])
    assert places(await index.search_vectors(tenant, SPACE, axis(0), ALL, 5)) == [0]
    await index.drop_tenant(tenant)
    await index.ensure_tenant(tenant)
    assert await index.search_vectors(tenant, SPACE, axis(0), ALL, 5) == []
    assert await index.search_keywords(tenant, ["backup"], ALL, 5) == []


async def test_an_unknown_tenant_is_refused_by_every_call(index: Index) -> None:
    """Shows that a mistyped tenant is an error in reading and writing, and is not created."""
    name = new_tenant()
    calls = [
        index.write(name, [chunk(uuid4(), 0, "text")]),
        index.commit_publication(name, uuid4(), chunks=1, vectors=0),
        index.search_keywords(name, ["text"], ALL, 5),
        index.search_keywords(name, [], ALL, 5),
        index.search_vectors(name, SPACE, axis(0), ALL, 5),
        index.document_frequencies(name, ["text"]),
        index.remove(name, uuid4(), 1),
        index.publications(name),
    ]
    for call in calls:
        with pytest.raises(UnknownTenant):
            await call
    assert not await index.has_tenant(name)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "lo_short", "sl_T1_C1/../x", None])
async def test_a_malformed_or_missing_tenant_never_reaches_the_engine(index: Index, name: str | None) -> None:
    """Shows that only a well-formed name becomes part of a path or URL."""
    forged = cast(TenantName, name)
    calls = [
        index.ensure_tenant(forged),
        index.has_tenant(forged),
        index.drop_tenant(forged),
        index.write(forged, [chunk(uuid4(), 0, "text")]),
        index.search_keywords(forged, ["text"], ALL, 5),
        index.publications(forged),
    ]
    for call in calls:
        with pytest.raises(InvalidTenant):
            await call


async def test_the_tenant_argument_has_no_default(index: Index) -> None:
    careless = cast(Any, index)
    with pytest.raises(TypeError):
        await careless.search_keywords(terms=["text"], filters=ALL, limit=5)


async def test_tenants_are_isolated_from_each_other(index: Index, tenant: TenantName) -> None:
    """Covers words, vectors, counts and listings."""
    other = new_tenant()
    await index.ensure_tenant(other)
    await index.write(other, [chunk(uuid4(), 0, "canary", vector=axis(0))])
    assert await index.search_keywords(tenant, ["canari"], ALL, 5) == []
    assert await index.search_vectors(tenant, SPACE, axis(0), ALL, 5) == []
    assert await index.document_frequencies(tenant, ["canari"]) == (0, {"canari": 0})
    assert await index.publications(tenant) == {}


async def test_a_hit_equals_the_written_chunk(index: Index, tenant: TenantName) -> None:
    """Text, pages and headings are unchanged in both legs, quotes included."""
    publication = uuid4()
    text = "Backups\u00a0run \"daily\" at 2:00 AM; naïve café, 50 % \\ 'x' — 数据库 😀\nnext line"
    written = chunk(publication, 3, text, vector=axis(1))
    await index.write(tenant, [written])
    for hits in (
        await index.search_keywords(tenant, analyze("daily backups"), ALL, 5),
        await index.search_vectors(tenant, SPACE, axis(1), ALL, 5),
    ):
        (hit,) = hits
        assert (hit.publication, hit.ordinal, hit.text) == (publication, 3, text)
        assert (hit.first_page, hit.last_page, hit.heading_path) == (4, 4, ("Chapter", "Section 3"))


async def test_writing_is_idempotent(index: Index, tenant: TenantName) -> None:
    """A repeated write leaves one chunk, one count and one vector."""
    publication = uuid4()
    chunks = [chunk(publication, 0, "backups run daily", vector=axis(0))]
    await index.write(tenant, chunks)
    await index.write(tenant, chunks)
    assert await index.publications(tenant) == {publication: 1}
    assert places(await index.search_vectors(tenant, SPACE, axis(0), ALL, 5)) == [0]
    assert await index.document_frequencies(tenant, ["backup"]) == (1, {"backup": 1})


async def test_a_rewritten_chunk_replaces_the_old_one(index: Index, tenant: TenantName) -> None:
    """Shows that neither the old words nor the old vector are found."""
    publication = uuid4()
    await index.write(tenant, [chunk(publication, 0, "tapes", vector=axis(0))])
    await index.search_vectors(tenant, SPACE, axis(0), ALL, 5)
    await index.write(tenant, [chunk(publication, 0, "disks", vector=axis(1))])
    assert await index.search_keywords(tenant, ["tape"], ALL, 5) == []
    (hit,) = await index.search_vectors(tenant, SPACE, axis(1), ALL, 5)
    assert (hit.text, round(hit.score, 5)) == ("disks", 1.0)


async def test_words_rank_by_bm25_with_repeated_query_terms(index: Index, tenant: TenantName) -> None:
    """Shows that a query term repeated three times has three times the weight."""
    texts = ["backup backup tapes", "backup of the mail server", "lunch menu", "holiday calendar"]
    publication = uuid4()
    await index.write(tenant, [chunk(publication, place, text) for place, text in enumerate(texts)])
    hits = await index.search_keywords(tenant, ["backup"], ALL, 10)
    assert places(hits) == [0, 1]
    thrice = await index.search_keywords(tenant, ["backup"] * 3, ALL, 10)
    assert [hit.score for hit in thrice] == pytest.approx([3 * hit.score for hit in hits], rel=1e-5)
    assert await index.search_keywords(tenant, ["absent"], ALL, 10) == []
    assert await index.search_keywords(tenant, [], ALL, 10) == []


CODES = ["SOP-IT-04", "1,204.5", "50%", "C++", "R&D", "v2.1", "user@example.com", "10.0.0.1", "don't"]


@pytest.mark.parametrize("code", CODES)
async def test_a_code_is_found_whole(index: Index, tenant: TenantName, code: str) -> None:
    """Shows that a code or number is one term: the chunk with it comes first, its parts after it."""
    texts = ["SOP-HR-04", "SOP-IT-05", "1,204.6", "5 % and 50", "C and D", "R and D", "v2.2", code]
    publication = uuid4()
    await index.write(tenant, [chunk(publication, place, text) for place, text in enumerate(texts)])
    hits = await index.search_keywords(tenant, analyze(code), ALL, 10)
    assert hits[0].text == code
    assert len(hits) == 1 or hits[0].score > hits[1].score
    whole = analyze(code)[0]
    assert (await index.document_frequencies(tenant, [whole]))[1] == {whole: 1}


async def test_vectors_rank_by_cosine_regardless_of_length(index: Index, tenant: TenantName) -> None:
    """Scores are cosines, best first; chunks without a vector are no hits."""
    publication = uuid4()
    vectors = [[2.0, 0.0], [3.0, 3.0], [0.0, 0.5], [-1.0, 0.0], None]
    await index.write(
        tenant, [chunk(publication, place, "text", vector=vector) for place, vector in enumerate(vectors)]
    )
    hits = await index.search_vectors(tenant, SPACE, [5.0, 0.0], ALL, 10)
    assert places(hits) == [0, 1, 2, 3]
    assert [hit.score for hit in hits] == pytest.approx([1.0, 0.70711, 0.0, -1.0], abs=1e-5)
    assert places(await index.search_vectors(tenant, SPACE, [5.0, 0.0], ALL, 2)) == [0, 1]


async def test_vectors_of_two_spaces_are_never_compared(index: Index, tenant: TenantName) -> None:
    """Each space finds and counts its own vectors, and may have its own dimensions."""
    ours, theirs = uuid4(), uuid4()
    await index.write(tenant, [chunk(ours, place, "backup", vector=axis(place)) for place in range(3)])
    longer = [chunk(theirs, place, "backup", vector=axis(place, 12), space=OTHER) for place in range(5)]
    await index.write(tenant, longer)
    await index.commit_publication(tenant, ours, chunks=3, vectors=3, space=SPACE)
    await index.commit_publication(tenant, theirs, chunks=5, vectors=5, space=OTHER)
    for publication, space in [(ours, OTHER), (theirs, SPACE), (ours, "never_used")]:
        with pytest.raises(IncompletePublication):
            await index.commit_publication(tenant, publication, chunks=3, vectors=1, space=space)
    for publication, space, dimensions in [(ours, SPACE, 8), (theirs, OTHER, 12), (ours, SPACE, 8)]:
        hits = await index.search_vectors(tenant, space, axis(1, dimensions), ALL, 20)
        assert (hits[0].ordinal, {hit.publication for hit in hits}) == (1, {publication})
    assert await index.search_vectors(tenant, "never_used", axis(0, 3), ALL, 20) == []
    assert len(await index.search_keywords(tenant, ["backup"], ALL, 20)) == 8
    await index.remove(tenant, ours, 3)
    assert await index.search_vectors(tenant, SPACE, axis(1), ALL, 20) == []
    assert len(await index.search_vectors(tenant, OTHER, axis(1, 12), ALL, 20)) == 5


async def test_chunks_without_vectors_answer_by_words_alone(index: Index, tenant: TenantName) -> None:
    """A tenant on the quick rung answers by words and returns no vector hits, without an error."""
    await index.write(tenant, [chunk(uuid4(), 0, "backups")])
    assert places(await index.search_keywords(tenant, ["backup"], ALL, 5)) == [0]
    assert await index.search_vectors(tenant, SPACE, axis(0), ALL, 5) == []


async def test_vectors_written_later_are_found_at_once(index: Index, tenant: TenantName) -> None:
    """Shows that vectors added since the last query are visible."""
    for place in range(3):
        await index.write(tenant, [chunk(uuid4(), place, "text", vector=axis(place))])
        hits = await index.search_vectors(tenant, SPACE, axis(place), ALL, 10)
        assert (hits[0].ordinal, len(hits)) == (place, place + 1)


async def test_filters_need_one_facet_of_each_group(index: Index, tenant: TenantName) -> None:
    """Facets match exactly, any within a group, all groups together, in both legs."""
    publication = uuid4()
    facets = [("document=a", "department=IT"), ("document=a-draft", "department=IT"), ("document=b",), ()]
    chunks = [
        chunk(publication, place, "backups", vector=axis(0), facets=marks)
        for place, marks in enumerate(facets)
    ]
    await index.write(tenant, chunks)
    for groups, expected in [
        ((frozenset({"document=a"}),), {0}),
        ((frozenset({"document=a", "document=b"}),), {0, 2}),
        ((frozenset({"document=a", "document=b"}), frozenset({"department=IT"})), {0}),
        ((frozenset({"document=c"}),), set()),
        ((frozenset(),), set()),
    ]:
        chosen = SearchFilter(groups)
        assert set(places(await index.search_keywords(tenant, ["backup"], chosen, 10))) == expected
        assert set(places(await index.search_vectors(tenant, SPACE, axis(0), chosen, 10))) == expected


async def test_hidden_publications_are_left_out_of_both_legs(index: Index, tenant: TenantName) -> None:
    """Shows that the limit is filled with visible hits even when all the best ones are hidden."""
    hidden, seen = uuid4(), uuid4()
    await index.write(tenant, [chunk(hidden, place, "backup backup", vector=axis(0)) for place in range(20)])
    await index.write(tenant, [chunk(seen, 7, "backup of other things", vector=axis(1))])
    chosen = SearchFilter(hidden=frozenset({hidden, uuid4()}))
    assert places(await index.search_keywords(tenant, ["backup"], chosen, 5)) == [7]
    assert places(await index.search_vectors(tenant, SPACE, axis(0), chosen, 5)) == [7]


async def test_document_frequencies_count_chunks_not_occurrences(index: Index, tenant: TenantName) -> None:
    """Shows that codes and punctuation are counted, too; idf is computed from these counts."""
    publication = uuid4()
    texts = ["backup backup SOP-IT-04", "backup 50%", "lunch"]
    await index.write(tenant, [chunk(publication, place, text) for place, text in enumerate(texts)])
    terms = ["backup", "sop-it-04", "50%", 'a"b', "absent"]
    expected = {"backup": 2, "sop-it-04": 1, "50%": 1, 'a"b': 0, "absent": 0}
    assert await index.document_frequencies(tenant, terms) == (3, expected)
    await index.write(tenant, [chunk(publication, 3, "backup")])
    assert (await index.document_frequencies(tenant, ["backup"])) == (4, {"backup": 3})


async def test_sealing_counts_chunks_and_vectors(index: Index, tenant: TenantName) -> None:
    """A complete publication seals repeatedly, an incomplete one does not."""
    publication = uuid4()
    await index.write(tenant, [chunk(publication, place, "text", vector=axis(place)) for place in range(3)])
    await index.write(tenant, [chunk(publication, 3, "text without a vector")])
    await index.commit_publication(tenant, publication, chunks=4, vectors=3, space=SPACE)
    await index.commit_publication(tenant, publication, chunks=4, vectors=3, space=SPACE)
    for chunks, vectors in [(5, 3), (4, 4)]:
        with pytest.raises(IncompletePublication):
            await index.commit_publication(tenant, publication, chunks=chunks, vectors=vectors, space=SPACE)
    assert await index.publications(tenant) == {publication: 4}
    assert (await index.document_frequencies(tenant, ["text"]))[0] == 4


async def test_a_removed_publication_leaves_no_traces(index: Index, tenant: TenantName) -> None:
    """No word, vector, facet or count of it is left; other publications stay."""
    gone, kept = uuid4(), uuid4()
    for publication in (gone, kept):
        chunks = [
            chunk(publication, place, f"backup {place}", vector=axis(0), facets=("a=b",))
            for place in range(30)
        ]
        await index.write(tenant, chunks)
        await index.commit_publication(tenant, publication, chunks=30, vectors=30, space=SPACE)
    await index.remove(tenant, gone, 30)
    await index.remove(tenant, gone, 30)
    if index.upkeep:
        await index.upkeep.purge_deleted(tenant)
    marked = SearchFilter((frozenset({"a=b"}),))
    for hits in (
        await index.search_keywords(tenant, ["backup"], ALL, 100),
        await index.search_vectors(tenant, SPACE, axis(0), ALL, 100),
        await index.search_keywords(tenant, ["backup"], marked, 100),
    ):
        assert (len(hits), {hit.publication for hit in hits}) == (30, {kept})
    assert await index.publications(tenant) == {kept: 30}
    assert (await index.document_frequencies(tenant, ["backup"])) == (30, {"backup": 30})


@pytest.mark.long
async def test_more_than_ten_thousand_chunks_are_sealed_and_removed(index: Index, tenant: TenantName) -> None:
    """Shows that no engine limit truncates the counting or removal of a large publication."""
    publication, chunks = uuid4(), 10_300
    written = [chunk(publication, place, "backup", vector=axis(place % 8)) for place in range(chunks)]
    await index.write(tenant, written)
    await index.commit_publication(tenant, publication, chunks=chunks, vectors=chunks, space=SPACE)
    assert await index.publications(tenant) == {publication: chunks}
    await index.remove(tenant, publication, chunks)
    assert await index.publications(tenant) == {}
    assert await index.search_keywords(tenant, ["backup"], ALL, 10) == []


async def test_many_publications_are_all_listed(index: Index, tenant: TenantName) -> None:
    """Shows that the listing is not truncated by pagination."""
    publications = [uuid4() for _ in range(250)]
    await index.write(tenant, [chunk(one, place, "text") for one in publications for place in range(5)])
    assert await index.publications(tenant) == dict.fromkeys(publications, 5)


async def test_a_healthy_engine_answers_a_ping(index: Index) -> None:
    await index.ping()
