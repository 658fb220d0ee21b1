"""A home refuses another index."""

import pytest

from storage.errors import ChangedIndex
from storage.models import TenantName
from storage.sql.database import Database
from storage.stores import require_same_index


class SomeIndex:
    """An index with only an identity and tenants."""

    def __init__(self, identity: str, *tenants: str) -> None:
        self.identity = identity
        self._tenants = {TenantName(name) for name in tenants}

    async def tenants(self) -> set[TenantName]:
        """Return the given tenants."""
        return self._tenants


OURS, OTHERS = SomeIndex("first"), "lo_" + 52 * "b"


@pytest.mark.parametrize(
    ("index", "address"),
    [
        (SomeIndex("second", OTHERS), "http://127.0.0.1:8080"),
        (SomeIndex("second"), "http://127.0.0.1:9090"),
    ],
)
async def test_another_index_is_refused_with_a_fix(
    database: Database, index: SomeIndex, address: str
) -> None:
    """An index without the home's documents would answer that there are none."""
    await require_same_index(database, OURS, "http://127.0.0.1:8080")
    with pytest.raises(ChangedIndex, match="set WEAVIATE_URL back"):
        await require_same_index(database, index, address)
    await require_same_index(database, OURS, "http://127.0.0.1:8080")


async def test_an_emptied_index_is_adopted_and_refilled(database: Database) -> None:
    """Shows that losing the index's disk costs time only, and that the new one then belongs to the home."""
    await require_same_index(database, OURS, "http://127.0.0.1:8080")
    await require_same_index(database, SomeIndex("second"), "http://127.0.0.1:8080")
    await require_same_index(database, SomeIndex("second", OTHERS), "http://127.0.0.1:8080")
    with pytest.raises(ChangedIndex):
        await require_same_index(database, SomeIndex("third", OTHERS), "http://127.0.0.1:8080")
