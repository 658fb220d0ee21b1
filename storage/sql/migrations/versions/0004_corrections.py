"""What an admin says of a version's metadata."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing is corrected yet."""
    op.add_column("version", sa.Column("corrected", sa.JSON(), nullable=True))
