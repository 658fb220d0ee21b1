"""What the tests of the database write, and the other processes that they start."""

import asyncio
import sys
from asyncio.subprocess import PIPE

from sqlalchemy import select

from storage.sql.database import Database
from storage.sql.tables import FactRow


async def keep(database: Database, name: str, value: str = "", *, exclusive: bool = True) -> None:
    """Write one row in a transaction of its own."""
    async with database.transaction(exclusive=exclusive) as session:
        session.add(FactRow(name=name, value=value))


async def names_in(database: Database) -> set[str]:
    """The names of all rows."""
    async with database.snapshot() as session:
        return set((await session.scalars(select(FactRow.name))).all())


async def start(program: str, *arguments: str) -> asyncio.subprocess.Process:
    """Another Python process, whose warnings are errors too."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-c", program, *arguments), stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
