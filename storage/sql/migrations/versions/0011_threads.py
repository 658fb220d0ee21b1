"""Which threads we take part in, found without reading the whole inbox."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Those from before are found, too."""
    op.create_index(op.f("ix_inbox_channel_id_thread"), "inbox", ["channel_id", "thread"])
