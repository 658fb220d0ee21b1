"""Applies the missing Alembic revisions to a database."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from storage.errors import NewerDatabase


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Apply the missing revisions up to ``revision`` inside the connection's transaction.

    Raises:
        NewerDatabase: the database has a revision that this release does not know.
    """
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    script = ScriptDirectory.from_config(config)
    current = MigrationContext.configure(connection).get_current_revision()
    if current not in {None, *(revision.revision for revision in script.walk_revisions())}:
        raise NewerDatabase(
            "a newer release of Footnote has changed this database; install that release, "
            "or restore the backup made before it"
        )
    command.upgrade(config, revision)
