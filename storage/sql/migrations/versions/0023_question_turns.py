"""Waiting questions have turns, which are fair between channels."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Those that wait already keep their order, which is that of their ids."""
    op.add_column("inbox", sa.Column("turn", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("inbox", sa.Column("is_late", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.drop_index(op.f("ix_inbox_state"), "inbox")
    op.create_index(op.f("ix_inbox_state_turn_id"), "inbox", ["state", "turn", "id"])
    op.create_index(op.f("ix_inbox_state_channel_id_turn"), "inbox", ["state", "channel_id", "turn"])
