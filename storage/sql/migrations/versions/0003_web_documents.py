"""Approved web pages become documents: all are fetched again."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Drop the texts of web pages with their citations, and empty the list of pages."""
    for table in ("web_citation", "web_page", "web_text"):
        op.drop_table(table)
    op.create_table(
        "web_page",
        sa.Column("url", sa.String, primary_key=True),
        sa.Column("sha256", sa.String),
        sa.Column("words", sa.Integer, nullable=False),
        sa.Column("listed", sa.JSON),
        sa.Column("validators", sa.JSON, nullable=False),
        sa.Column("fetched_at", MOMENT),
        sa.Column("changed_at", MOMENT),
        sa.Column("due_at", MOMENT, nullable=False, index=True),
        sa.Column("error", sa.String),
        sa.Column("failing_since", MOMENT),
    )
