"""How many pages of a reading on its way are done."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Those on their way begin anew."""
    op.add_column("reading", sa.Column("pages_begun", sa.Integer(), nullable=False, server_default="0"))
