"""A channel is found under every id that its platform ever gave its conversation."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """No conversation has got another id yet."""
    op.create_table(
        "channel_move",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("channel_id", sa.Integer(), nullable=False),
        sa.Column("moved_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["channel_id"], ["channel.id"], name=op.f("fk_channel_move_channel_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_channel_move")),
        sa.UniqueConstraint("tenant", name=op.f("uq_channel_move_tenant")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_channel_move_channel_id"), "channel_move", ["channel_id"])
