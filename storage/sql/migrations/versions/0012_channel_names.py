"""Who named a channel: its platform, or an admin."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Names from before may be changed by either."""
    op.add_column("channel", sa.Column("named_by", sa.String(), nullable=True))
