"""Runs the migrations on the connection that ``storage.sql.database`` has opened and locked."""

from alembic import context
from sqlmodel import SQLModel

import storage.sql.tables  # noqa: F401 - registers the tables in the metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=SQLModel.metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
