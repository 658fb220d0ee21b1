"""Schema migrations: Alembic revisions and the code that applies them."""
