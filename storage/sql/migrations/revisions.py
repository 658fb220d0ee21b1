"""Checks a database's revision without Alembic, whose import takes half a second."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from storage.errors import NewerDatabase, OlderDatabase

VERSIONS = Path(__file__).with_name("versions")


def newest_revision() -> str:
    """Return the last revision of this release; file names begin with revisions, which count up."""
    return max(path.name.partition("_")[0] for path in VERSIONS.glob("[0-9]*.py"))


def is_known(revision: str) -> bool:
    """True if this release knows the revision."""
    return any(path.name.partition("_")[0] == revision for path in VERSIONS.glob("[0-9]*.py"))


def held_revision(connection: Connection) -> str | None:
    """Return the revision of a database; None before the first."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    held: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return held


def is_current(connection: Connection) -> bool:
    """True if no revision is missing; a database of a newer release is not current either."""
    return held_revision(connection) == newest_revision()


def require_current(connection: Connection) -> None:
    """Verify that the tables are this release's; change nothing.

    Raises:
        OlderDatabase: revisions are missing.
        NewerDatabase: the database has a revision that this release does not know.
    """
    held, newest = held_revision(connection), newest_revision()
    if held is None or held < newest:
        raise OlderDatabase(
            f"the schema is at revision {held or 'none'}, this release needs {newest}: run footnote serve"
        )
    if held > newest:
        raise NewerDatabase(
            f"the schema is at revision {held}, this release supports at most {newest}: upgrade Footnote"
        )
