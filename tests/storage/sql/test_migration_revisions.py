"""The database revision, read without Alembic, equals what Alembic reports."""

from __future__ import annotations

import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text

from storage.sql.database import Database
from storage.sql.migrations.revisions import VERSIONS, is_current, newest_revision


def test_the_newest_file_is_the_head() -> None:
    """Shows that the file name of a revision does not matter."""
    assert ScriptDirectory(VERSIONS.parent).get_current_head() == newest_revision()


async def test_a_database_is_current_once_opened(tmp_path: Path) -> None:
    """Neither before, nor with a revision of another release."""
    engine = create_engine(f"sqlite:///{tmp_path / 'footnote.db'}")
    with engine.connect() as connection:
        assert not is_current(connection)
    async with aclosing(await Database.open(str(engine.url))):
        pass
    with engine.begin() as connection:
        assert is_current(connection)
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        assert not is_current(connection)
    engine.dispose()


def test_the_compute_program_imports_no_sqlalchemy() -> None:
    """Shows that chunking does not pay for the service's imports."""
    told = "import sys, ingestion.compute_program; print('sqlalchemy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
