"""The SQL side of the comparison takes any number of names."""

from uuid import UUID

from storage.queues.inventory import Inventory
from storage.sql.database import Database

MANY = 70_000
"""More than PostgreSQL takes in one statement."""


async def test_an_index_may_hold_more_strays_than_a_statement_names(database: Database) -> None:
    """Shows that a database that was lost does not keep its index from being cleared."""
    held = {UUID(int=number) for number in range(MANY)}
    assert await Inventory(database).orphans(held) == held


async def test_a_disk_may_hold_more_strays_than_a_statement_names(database: Database) -> None:
    """Shows that a database that was lost does not keep its blobs from being swept."""
    removed: list[str] = []
    names = [f"{number:064x}" for number in range(MANY)]
    assert await Inventory(database).drop_orphans(names, removed.append) == MANY
    assert sorted(removed) == names
