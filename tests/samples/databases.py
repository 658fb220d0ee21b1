"""What the tests of the database write, and the other processes that they start."""

import asyncio
import os
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
    """Return the names of all rows."""
    async with database.snapshot() as session:
        return set((await session.scalars(select(FactRow.name))).all())


async def start(program: str, *arguments: str) -> asyncio.subprocess.Process:
    """Another Python process, whose warnings are errors too."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-c", program, *arguments), stdin=PIPE, stdout=PIPE, stderr=PIPE
    )


FORKING = """
import os, sys
import storage.queues.reading_queue, storage.sql.migrations.upgrade

program, count, *arguments = sys.argv[1:]
for number in range(int(count)):
    if os.fork() == 0:
        sys.argv = [sys.argv[0], *arguments, str(number)]
        exec(program, {"__name__": "__main__"})
        os._exit(0)
print(*[os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(int(count))], file=sys.stderr)
"""


async def run_at_once(count: int, program: str, *arguments: str) -> list[str]:
    """Return the lines, each of one ``os.write``, of processes that begin at the same moment.

    Each is a fork of one that has imported what they need, and is told its number as the last argument.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-c", FORKING, program, str(count), *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    lines, errors = await process.communicate()
    assert errors.split() == [b"0"] * count, errors.decode()
    return lines.decode().splitlines()
