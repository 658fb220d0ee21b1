"""What each question leaves: how it was answered."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Questions from before left nothing."""
    op.create_table(
        "question_record",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("channel_id", sa.Integer(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["channel_id"], ["channel.id"], name=op.f("fk_question_record_channel_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_question_record")),
        sa.UniqueConstraint("channel_id", "key", name=op.f("uq_question_record_channel_id_key")),
    )
    op.create_index(
        op.f("ix_question_record_channel_id_asked_at"), "question_record", ["channel_id", "asked_at"]
    )
    op.create_index(op.f("ix_question_record_asked_at"), "question_record", ["asked_at"])
