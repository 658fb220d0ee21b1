"""Engine-neutral dump of the tables: JSON lines that both SQLite and PostgreSQL can load.

The first line of a table names its columns and their kinds, so that the dump of an older release can be read
without knowing its tables. All tables are read in one snapshot, concurrently with writers.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    Column,
    Integer,
    LargeBinary,
    Text,
    Uuid,
    cast,
    column,
    func,
    insert,
    inspect,
    select,
    table,
    text,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.types import NullType, TypeEngine
from sqlmodel import SQLModel

from storage.errors import DamagedBackup
from storage.sql.columns import UtcDateTime

ROWS_AT_ONCE = 500
Row = dict[str, Any]

# Kind -> (serializer, parser, type for binding).
_KINDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[], TypeEngine[Any]]]] = {
    "uuid": (str, UUID, Uuid),
    "moment": (datetime.isoformat, datetime.fromisoformat, UtcDateTime),
    "bytes": (lambda value: base64.b64encode(value).decode(), base64.b64decode, LargeBinary),
    # As text, to distinguish SQL's NULL from JSON's null.
    "json": (str, lambda value: _json_value(json.loads(value)), lambda: JSON(none_as_null=True)),
    "plain": (lambda value: value, lambda value: value, NullType),
}


def _json_value(value: Any) -> Any:
    return JSON.NULL if value is None else value


def _kind(of: Column[Any]) -> str:
    types = {"uuid": Uuid, "moment": UtcDateTime, "bytes": LargeBinary, "json": JSON}
    return next((kind for kind, type_ in types.items() if isinstance(of.type, type_)), "plain")


async def dump_tables(session: AsyncSession, folder: Path) -> tuple[dict[str, Path], dict[str, int]]:
    """Write every table to a file in ``folder``.

    Returns:
        The files, in an order in which their tables can be filled, and the last ids of tables with
        counted ids.
    """
    made = {}
    for one in SQLModel.metadata.sorted_tables:
        kinds = {of.name: _kind(of) for of in one.columns}
        writers = [_KINDS[kind][0] for kind in kinds.values()]
        shown = [cast(of, Text) if kinds[of.name] == "json" else of for of in one.columns]
        made[one.name] = folder / f"{one.name}.jsonl.gz"
        # Without a timestamp, so that an unchanged table has the same hash as before.
        packed = gzip.GzipFile(made[one.name], "wb", compresslevel=4, mtime=0)
        with packed, io.TextIOWrapper(packed, "utf-8") as file:
            file.write(json.dumps(kinds) + "\n")
            rows = await session.stream(select(*shown), execution_options={"yield_per": ROWS_AT_ONCE})
            async for row in rows:
                values = [
                    None if value is None else write(value) for write, value in zip(writers, row, strict=True)
                ]
                file.write(json.dumps(values, separators=(",", ":")) + "\n")
    return made, await _last_ids(session)


async def _last_ids(session: AsyncSession) -> dict[str, int]:
    """Return the last id by table, from the engine's sequence: deleted rows keep their ids."""
    if session.get_bind().dialect.name == "sqlite":
        rows = await session.execute(text("SELECT name, seq FROM sqlite_sequence"))
        return {name: seq for name, seq in rows if name in _counted()}
    last = {}
    for name in _counted():
        sequence = await session.scalar(select(func.pg_get_serial_sequence(f'"{name}"', "id")))
        if sequence:
            last[name] = await session.scalar(select(column("last_value")).select_from(text(sequence)))
    return {name: value for name, value in last.items() if value}


def _counted() -> list[str]:
    """Return the tables with ids from a sequence; those of citations are random."""
    tables = SQLModel.metadata.sorted_tables
    return [one.name for one in tables if "id" in one.columns and type(one.columns["id"].type) is Integer]


async def load_table(
    connection: AsyncConnection, name: str, file: Path, change: Callable[[str, Row], Row | None]
) -> int:
    """Fill an empty table from a dump; return the number of rows.

    Args:
        change: maps (table, row) to the row to write; None skips it.

    Raises:
        DamagedBackup: a line is not a row of the table.
    """
    count = 0
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        try:
            kinds: dict[str, str] = json.loads(next(lines))
            target = table(name, *(column(key, _KINDS[kind][2]()) for key, kind in kinds.items()))
            changed = (change(name, row) for row in _rows(lines, kinds))
            rows = (row for row in changed if row is not None)
            while some := list(islice(rows, ROWS_AT_ONCE)):
                await connection.execute(insert(target), some)
                count += len(some)
        except (ValueError, LookupError, EOFError, StopIteration, gzip.BadGzipFile) as error:
            raise DamagedBackup(f"the backup's dump of the table {name} is damaged") from error
    return count


def _rows(lines: Iterator[str], kinds: dict[str, str]) -> Iterator[Row]:
    readers = [(name, _KINDS[kind][1]) for name, kind in kinds.items()]
    for line in lines:
        values = json.loads(line)
        pairs = zip(readers, values, strict=True)
        yield {name: None if value is None else read(value) for (name, read), value in pairs}


async def set_last_ids(connection: AsyncConnection, last_ids: dict[str, int]) -> None:
    """Advance every sequence to its last id, and at least to the highest id in its table."""
    is_sqlite = connection.dialect.name == "sqlite"
    known = await connection.run_sync(lambda sync: set(inspect(sync).get_table_names()))
    for name in known.intersection(_counted()):
        found = await connection.scalar(select(func.max(SQLModel.metadata.tables[name].c.id)))
        values = {"name": name, "last": max(last_ids.get(name, 0), found or 0)}
        if not values["last"]:
            continue
        if is_sqlite:
            await connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), values)
            await connection.execute(
                text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)"), values
            )
        elif sequence := await connection.scalar(select(func.pg_get_serial_sequence(f'"{name}"', "id"))):
            await connection.execute(select(func.setval(sequence, values["last"])))
