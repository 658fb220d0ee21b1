"""A home's facts do not change unnoticed."""

import asyncio

import pytest

from storage.database import Database
from storage.errors import ChangedEmbedder, ChangedIndex
from storage.facts import hold_embedder, hold_index


async def test_another_embedder_is_refused_with_what_to_do(database: Database) -> None:
    """The first embedder is kept; a second one ends in a sentence that names both, and changes nothing."""
    await hold_embedder(database, "minilm-256")
    with pytest.raises(ChangedEmbedder, match=r"minilm-256.*other-512.*FOOTNOTE_EMBEDDER"):
        await hold_embedder(database, "other-512")
    await hold_embedder(database, "minilm-256")


async def test_of_two_embedders_at_once_one_is_kept(database: Database) -> None:
    """Two processes starting with different embedders cannot both believe to be the first."""
    outcomes = await asyncio.gather(
        hold_embedder(database, "one"), hold_embedder(database, "two"), return_exceptions=True
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["ChangedEmbedder", "NoneType"]


async def test_another_index_is_refused_with_what_to_do(database: Database) -> None:
    """An index that never heard of the home's documents would find nothing and say so of them."""
    await hold_index(database, "embedded")
    with pytest.raises(ChangedIndex, match="set WEAVIATE_URL back"):
        await hold_index(database, "The chunks of a Footnote, 1")
    await hold_index(database, "embedded")
