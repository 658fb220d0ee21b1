"""What threads remember of their questions and answers."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Threads from before remember nothing."""
    op.create_table(
        "turn",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("channel_id", sa.Integer(), nullable=False),
        sa.Column("thread", sa.String(), nullable=False),
        sa.Column("question", sa.String(), nullable=False),
        sa.Column("standalone", sa.String(), nullable=False),
        sa.Column("answer", sa.String(), nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["channel_id"], ["channel.id"], name=op.f("fk_turn_channel_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_turn")),
        sa.UniqueConstraint("key", name=op.f("uq_turn_key")),
    )
    op.create_index(op.f("ix_turn_channel_id_thread_asked_at"), "turn", ["channel_id", "thread", "asked_at"])
    op.create_index(op.f("ix_turn_asked_at"), "turn", ["asked_at"])
