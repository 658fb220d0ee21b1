"""Mapped folders, an admin's word, notices, vector spaces, and vectors kept for the next time."""

import sqlalchemy as sa
from alembic import op

from storage.clock import utc_now
from storage.sql.migrations.shape import write_planner_statistics

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what the folders need; what is there keeps its meaning."""
    _widen_folders()
    _free_names_of_deleted_documents()
    _name_spaces()
    _make_notices()
    _make_cached_vectors()
    _widen_citation_ids()
    _order_queues()
    write_planner_statistics(op.get_bind())


def _widen_folders() -> None:
    with op.batch_alter_table("folder") as folder:
        folder.add_column(sa.Column("origin", sa.String(), nullable=False, server_default="hand"))
        folder.add_column(sa.Column("asked", sa.JSON(), nullable=True))
        folder.add_column(sa.Column("approved", sa.JSON(), nullable=True))
        folder.add_column(sa.Column("lease_owner", sa.String(), nullable=True))
        folder.add_column(sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True))
    op.execute("UPDATE folder SET origin = 'inbox' WHERE watched")


def _free_names_of_deleted_documents() -> None:
    """A deleted document keeps its name for the undo, and leaves it to a file that comes in its place."""
    op.drop_index("ix_document_folder_id", table_name="document")
    with op.batch_alter_table("document") as document:
        document.drop_constraint(op.f("uq_document_folder_id_file"), type_="unique")
    op.create_index(op.f("ix_document_folder_id_file"), "document", ["folder_id", "file"])
    present = sa.text("state != 'deleted'")
    op.create_index(
        "uq_document_present_file",
        "document",
        ["folder_id", "file"],
        unique=True,
        sqlite_where=present,
        postgresql_where=present,
    )


def _name_spaces() -> None:
    """A full reading's generation ends with the embedder that made its vectors."""
    op.add_column("reading", sa.Column("space", sa.String(), nullable=True))
    op.add_column("reading", sa.Column("again", sa.Boolean(), nullable=False, server_default=sa.false()))
    bind = op.get_bind()
    made = (
        bind.execute(sa.text("SELECT DISTINCT generation FROM reading WHERE rung = 'full'")).scalars().all()
    )
    for generation in made:
        bind.execute(
            sa.text("UPDATE reading SET space = :space WHERE rung = 'full' AND generation = :generation"),
            {"space": generation.rsplit("+", 1)[-1].replace("-", "_"), "generation": generation},
        )


def _make_notices() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "notice",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=True),
        sa.Column("channel_id", sa.Integer(), nullable=False),
        sa.Column("folder_id", sa.Integer(), nullable=True),
        sa.Column("document_id", sa.Uuid(), nullable=True),
        sa.Column("version_id", sa.Integer(), nullable=True),
        sa.Column("text", sa.String(), nullable=True),
        sa.Column("questions", sa.JSON(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("batch", sa.String(), nullable=True),
        sa.Column("told_in", sa.Integer(), nullable=True),
        sa.Column("lease_until", moment, nullable=True),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("posted_at", moment, nullable=True),
        sa.ForeignKeyConstraint(["channel_id"], ["channel.id"], name=op.f("fk_notice_channel_id")),
        sa.ForeignKeyConstraint(["folder_id"], ["folder.id"], name=op.f("fk_notice_folder_id")),
        sa.ForeignKeyConstraint(["document_id"], ["document.id"], name=op.f("fk_notice_document_id")),
        sa.ForeignKeyConstraint(["version_id"], ["version.id"], name=op.f("fk_notice_version_id")),
        sa.ForeignKeyConstraint(["told_in"], ["channel.id"], name=op.f("fk_notice_told_in")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notice")),
        sa.UniqueConstraint("key", name=op.f("uq_notice_key")),
    )
    op.create_index(op.f("ix_notice_channel_id"), "notice", ["channel_id"], unique=False)
    op.create_index(op.f("ix_notice_batch"), "notice", ["batch"], unique=False)
    op.create_index(
        op.f("ix_notice_state_channel_id_created_at"), "notice", ["state", "channel_id", "created_at"]
    )
    _take_as_told(_LIVE_ALREADY)
    _take_as_told(_FAILED_ALREADY)


_LIVE_ALREADY = """
INSERT INTO notice (kind, key, channel_id, document_id, version_id, state, created_at)
SELECT 'live', 'live:' || p.channel_id || ':' || p.version_id, p.channel_id, v.document_id, p.version_id,
       'dropped', :now
FROM publication p JOIN version v ON v.id = p.version_id
WHERE p.live_at IS NOT NULL GROUP BY p.channel_id, p.version_id, v.document_id
"""
_FAILED_ALREADY = """
INSERT INTO notice (kind, key, channel_id, document_id, version_id, state, created_at)
SELECT 'failed', 'failed:' || v.id, d.channel_id, d.id, v.id, 'dropped', :now
FROM version v JOIN document d ON d.id = v.document_id
WHERE EXISTS (SELECT 1 FROM reading r WHERE r.sha256 = v.sha256 AND r.state = 'failed')
"""


def _take_as_told(statement: str) -> None:
    """Nobody is told today of what was there before."""
    now = sa.bindparam("now", utc_now(), type_=sa.DateTime(timezone=True))
    op.get_bind().execute(sa.text(statement).bindparams(now))


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


def _order_queues() -> None:
    """Who takes the next row of a queue finds it first; a channel's deleted documents are found at once."""
    op.drop_index("ix_reading_state", table_name="reading")
    op.create_index("ix_reading_queue", "reading", ["state", "rung", "generation", "again", "created_at"])
    op.drop_index("ix_publication_state", table_name="publication")
    op.add_column("publication", sa.Column("rung", sa.String(), nullable=False, server_default="quick"))
    full = "SELECT id FROM reading WHERE rung = 'full'"
    op.execute(f"UPDATE publication SET rung = 'full' WHERE reading_id IN ({full})")  # noqa: S608 - constants
    op.create_index("ix_publication_queue", "publication", ["state", "rung", "created_at", "id"])
    op.drop_index("ix_document_channel_id", table_name="document")
    op.create_index(op.f("ix_document_channel_id_state"), "document", ["channel_id", "state"])


def _widen_citation_ids() -> None:
    """SQLite's integers are wide already."""
    if op.get_bind().dialect.name != "sqlite":
        op.alter_column("citation", "id", type_=sa.BigInteger(), server_default=None)
