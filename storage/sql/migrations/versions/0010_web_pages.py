"""Approved web pages: what was fetched of each, the quotes of them that were shown, and notices of both."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing was fetched before."""
    op.create_table(
        "web_text",
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("day", sa.String(), nullable=False),
        sa.Column("words", sa.Integer(), nullable=False),
        sa.Column("chunks", sa.JSON(), nullable=False),
        sa.Column("space", sa.String(), nullable=True),
        sa.Column("vectors", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_web_text")),
    )
    op.create_table(
        "web_page",
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=True),
        sa.Column("listed", sa.JSON(), nullable=True),
        sa.Column("validators", sa.JSON(), nullable=False),
        sa.Column("fetched_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("failing_since", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["sha256"], ["web_text.sha256"], name=op.f("fk_web_page_sha256")),
        sa.PrimaryKeyConstraint("url", name=op.f("pk_web_page")),
    )
    op.create_index(op.f("ix_web_page_sha256"), "web_page", ["sha256"])
    op.create_index(op.f("ix_web_page_due_at"), "web_page", ["due_at"])
    op.create_table(
        "web_citation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("channel_id", sa.Integer(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("quote", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["channel_id"], ["channel.id"], name=op.f("fk_web_citation_channel_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["sha256"], ["web_text.sha256"], name=op.f("fk_web_citation_sha256")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_web_citation")),
    )
    for name in ("channel_id", "url", "sha256", "created_at"):
        op.create_index(op.f(f"ix_web_citation_{name}"), "web_citation", [name])
    op.add_column("notice", sa.Column("url", sa.String(), nullable=True))
