"""Answers that were erased and whose messages are to say so; channels that we are no more in."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing was erased before, and no channel is known to be left."""
    op.add_column("outbox", sa.Column("removed_in", sa.String(), nullable=True))
    op.add_column("channel", sa.Column("left_at", sa.DateTime(timezone=True), nullable=True))
