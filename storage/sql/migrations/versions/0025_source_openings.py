"""How often people open the sources of answers, by day."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What was opened before is not known."""
    identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "source_opening",
        sa.Column("citation_id", identity, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("channel_id", sa.Integer(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["citation_id"], ["citation.id"], name=op.f("fk_source_opening_citation_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["channel_id"], ["channel.id"], name=op.f("fk_source_opening_channel_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("citation_id", "day", name=op.f("pk_source_opening")),
    )
    op.create_index(op.f("ix_source_opening_channel_id"), "source_opening", ["channel_id"])
