"""Checks whether a database has every revision, without Alembic: importing that takes half a second."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

VERSIONS = Path(__file__).with_name("versions")


def newest_revision() -> str:
    """The last revision of this release; files begin with their revisions, which count up."""
    return max(path.name.partition("_")[0] for path in VERSIONS.glob("[0-9]*.py"))


def is_known(revision: str) -> bool:
    """Whether this release has a revision of that name."""
    return any(path.name.partition("_")[0] == revision for path in VERSIONS.glob("[0-9]*.py"))


def is_current(connection: Connection) -> bool:
    """Whether nothing is left to apply; a database of a newer release is not current either."""
    if not inspect(connection).has_table("alembic_version"):
        return False
    held = connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
    return list(held) == [newest_revision()]
