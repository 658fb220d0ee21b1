"""Which channels are chats between one person and the bot; where one is reached that nobody asked in."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One from before is known as such from its next message on."""
    op.add_column("channel", sa.Column("is_direct", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("channel", sa.Column("address", sa.JSON(), nullable=True))
