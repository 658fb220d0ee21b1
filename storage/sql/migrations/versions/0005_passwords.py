"""Passwords of locked PDFs, by reference."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_LOCKED = "the PDF opens only with a password; save a copy without one"
"""What every locked file was told until now."""


def upgrade() -> None:
    """No folder names a password yet; what is locked is marked, to be opened once one does."""
    op.add_column("folder", sa.Column("passwords", sa.JSON(), nullable=True))
    op.add_column("reading", sa.Column("locked", sa.Boolean(), nullable=False, server_default=sa.false()))
    reading = sa.table("reading", *map(sa.column, ("state", "reason", "locked")))
    is_locked = (reading.c.state == "failed") & (reading.c.reason == _LOCKED)
    op.execute(sa.update(reading).where(is_locked).values(locked=sa.true()))
