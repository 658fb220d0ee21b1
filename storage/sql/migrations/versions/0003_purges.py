"""Documents that nothing brings back any more."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Whose purge had begun is found by the next one: its grace is over."""
    op.add_column("document", sa.Column("purged_at", sa.DateTime(timezone=True), nullable=True))
