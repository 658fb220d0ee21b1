"""A home's facts do not change unnoticed."""

import pytest

from storage.database import Database
from storage.errors import ChangedIndex
from storage.facts import first_space, hold_index
from storage.tables import FactRow


async def test_the_embedder_of_the_first_release_names_the_first_space(database: Database) -> None:
    """Shows that vectors without a space are known to be those of the embedder the home was held to."""
    assert await first_space(database) is None
    async with database.transaction() as session:
        session.add(FactRow(name="embedder", value="onnx-0123456789abcdef"))
    assert await first_space(database) == "onnx_0123456789abcdef"


async def test_another_index_is_refused_with_what_to_do(database: Database) -> None:
    """An index that never heard of the home's documents would find nothing and say so of them."""
    await hold_index(database, "embedded")
    with pytest.raises(ChangedIndex, match="set WEAVIATE_URL back"):
        await hold_index(database, "The chunks of a Footnote, 1")
    await hold_index(database, "embedded")
