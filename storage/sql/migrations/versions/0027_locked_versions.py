"""A version whose content opens only with a password that its document's folder does not have."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What answers already goes on answering; it is asked for its password when it is published anew."""
    op.add_column("version", sa.Column("locked", sa.Boolean(), nullable=False, server_default=sa.false()))
