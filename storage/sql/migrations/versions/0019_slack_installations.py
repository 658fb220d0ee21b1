"""Slack workspaces that installed the app, and installations that were begun."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """No workspace has installed the app yet."""
    op.create_table(
        "slack_installation",
        sa.Column("installation", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("bot_user", sa.String(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("renewing_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("problem", sa.String(), nullable=True),
        sa.Column("installed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("installation", name=op.f("pk_slack_installation")),
    )
    op.create_table(
        "oauth_state",
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_oauth_state")),
    )
    op.create_index(op.f("ix_oauth_state_expires_at"), "oauth_state", ["expires_at"])
