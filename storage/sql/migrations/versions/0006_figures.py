"""How many figures a reading has."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Readings from before looked for none."""
    op.add_column("reading", sa.Column("figures", sa.Integer(), nullable=False, server_default="0"))
