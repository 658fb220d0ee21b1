"""The history of the tables: Alembic revisions and what applies them."""
