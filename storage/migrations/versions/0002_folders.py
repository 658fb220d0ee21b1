"""Mapped folders, an admin's word, notices, vector spaces, and vectors kept for the next time."""

import sqlalchemy as sa
from alembic import op

from storage.migrations.shape import tell_shape

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what the folders need; what is there keeps its meaning."""
    _widen_folders()
    _name_spaces()
    _make_notices()
    _make_cached_vectors()
    _widen_citation_ids()
    tell_shape(op.get_bind())


def _widen_folders() -> None:
    with op.batch_alter_table("folder") as folder:
        folder.add_column(sa.Column("origin", sa.String(), nullable=False, server_default="hand"))
        folder.add_column(sa.Column("asked", sa.JSON(), nullable=True))
        folder.add_column(sa.Column("approved", sa.JSON(), nullable=True))
        folder.add_column(sa.Column("lease_owner", sa.String(), nullable=True))
        folder.add_column(sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True))
    op.execute("UPDATE folder SET origin = 'inbox' WHERE watched")


def _name_spaces() -> None:
    """A full reading's generation ends with the embedder that made its vectors."""
    op.add_column("reading", sa.Column("space", sa.String(), nullable=True))
    bind = op.get_bind()
    made = (
        bind.execute(sa.text("SELECT DISTINCT generation FROM reading WHERE rung = 'full'")).scalars().all()
    )
    for generation in made:
        bind.execute(
            sa.text("UPDATE reading SET space = :space WHERE rung = 'full' AND generation = :generation"),
            {"space": generation.rsplit("+", 1)[-1], "generation": generation},
        )


def _make_notices() -> None:
    op.create_table(
        "notice",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("channel_id", sa.Integer(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=True),
        sa.Column("version_id", sa.Integer(), nullable=True),
        sa.Column("text", sa.String(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("posted_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["channel_id"], ["channel.id"], name=op.f("fk_notice_channel_id")),
        sa.ForeignKeyConstraint(["document_id"], ["document.id"], name=op.f("fk_notice_document_id")),
        sa.ForeignKeyConstraint(["version_id"], ["version.id"], name=op.f("fk_notice_version_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notice")),
    )
    op.create_index(op.f("ix_notice_channel_id"), "notice", ["channel_id"], unique=False)
    op.create_index(op.f("ix_notice_state_created_at"), "notice", ["state", "created_at"], unique=False)


def _make_cached_vectors() -> None:
    op.create_table(
        "cached_vector",
        sa.Column("space", sa.String(), nullable=False),
        sa.Column("text_hash", sa.String(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("space", "text_hash", name=op.f("pk_cached_vector")),
    )
    op.create_index(op.f("ix_cached_vector_used_at"), "cached_vector", ["used_at"], unique=False)


def _widen_citation_ids() -> None:
    """SQLite's integers are wide already."""
    if op.get_bind().dialect.name != "sqlite":
        op.alter_column("citation", "id", type_=sa.BigInteger(), server_default=None)
