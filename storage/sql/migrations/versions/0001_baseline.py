"""The tables of the first release."""

import sqlalchemy as sa
from alembic import op

from storage.sql.migrations.shape import write_planner_statistics

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make every table, and tell the planner how they will be filled."""
    _make_blobs()
    _make_channels()
    _make_facts()
    _make_folders()
    _make_inbox()
    _make_readings()
    _make_documents()
    _make_outbox()
    _make_versions()
    _make_citations()
    _make_publications()
    write_planner_statistics(op.get_bind())


def _make_blobs() -> None:
    op.create_table(
        "blob",
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_blob")),
    )


def _make_channels() -> None:
    op.create_table(
        "channel",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("installation", sa.String(), nullable=True),
        sa.Column("conversation", sa.String(), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_channel")),
        sa.UniqueConstraint("tenant", name=op.f("uq_channel_tenant")),
        sqlite_autoincrement=True,
    )


def _make_facts() -> None:
    op.create_table(
        "fact",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_fact")),
    )


def _make_folders() -> None:
    op.create_table(
        "folder",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("channel_id", sa.Integer(), nullable=False),
        sa.Column("location", sa.String(), nullable=False),
        sa.Column("watched", sa.Boolean(), nullable=False),
        sa.Column("problem", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["channel_id"], ["channel.id"], name=op.f("fk_folder_channel_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_folder")),
        sa.UniqueConstraint("channel_id", "location", name=op.f("uq_folder_channel_id_location")),
    )
    op.create_index(op.f("ix_folder_channel_id"), "folder", ["channel_id"], unique=False)


def _make_inbox() -> None:
    op.create_table(
        "inbox",
        sa.Column("lease_owner", sa.String(), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("event_key", sa.String(), nullable=False),
        sa.Column("message_key", sa.String(), nullable=False),
        sa.Column("channel_id", sa.Integer(), nullable=False),
        sa.Column("thread", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("address", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["channel_id"], ["channel.id"], name=op.f("fk_inbox_channel_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_inbox")),
        sa.UniqueConstraint("platform", "event_key", name=op.f("uq_inbox_platform_event_key")),
        sa.UniqueConstraint("platform", "message_key", name=op.f("uq_inbox_platform_message_key")),
    )
    op.create_index(op.f("ix_inbox_channel_id"), "inbox", ["channel_id"], unique=False)
    op.create_index(op.f("ix_inbox_state"), "inbox", ["state"], unique=False)


def _make_readings() -> None:
    op.create_table(
        "reading",
        sa.Column("lease_owner", sa.String(), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("generation", sa.String(), nullable=False),
        sa.Column("rung", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("pages", sa.Integer(), nullable=False),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.Column("details", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["sha256"], ["blob.sha256"], name=op.f("fk_reading_sha256")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reading")),
        sa.UniqueConstraint("sha256", "generation", "rung", name=op.f("uq_reading_sha256_generation_rung")),
    )
    op.create_index(op.f("ix_reading_sha256_state"), "reading", ["sha256", "state"], unique=False)
    op.create_index(op.f("ix_reading_state"), "reading", ["state"], unique=False)


def _make_documents() -> None:
    op.create_table(
        "document",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("channel_id", sa.Integer(), nullable=False),
        sa.Column("folder_id", sa.Integer(), nullable=False),
        sa.Column("file", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("look", sa.JSON(), nullable=True),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["channel_id"], ["channel.id"], name=op.f("fk_document_channel_id")),
        sa.ForeignKeyConstraint(["folder_id"], ["folder.id"], name=op.f("fk_document_folder_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_document")),
        sa.UniqueConstraint("folder_id", "file", name=op.f("uq_document_folder_id_file")),
    )
    op.create_index(op.f("ix_document_channel_id"), "document", ["channel_id"], unique=False)
    op.create_index(op.f("ix_document_folder_id"), "document", ["folder_id"], unique=False)
    op.create_index(op.f("ix_document_state"), "document", ["state"], unique=False)


def _make_outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("inbox_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("message", sa.JSON(), nullable=True),
        sa.Column("answer", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("delivered_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["inbox_id"], ["inbox.id"], name=op.f("fk_outbox_inbox_id")),
        sa.PrimaryKeyConstraint("inbox_id", name=op.f("pk_outbox")),
    )
    op.create_index(op.f("ix_outbox_state"), "outbox", ["state"], unique=False)


def _make_versions() -> None:
    op.create_table(
        "version",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["document_id"], ["document.id"], name=op.f("fk_version_document_id")),
        sa.ForeignKeyConstraint(["sha256"], ["blob.sha256"], name=op.f("fk_version_sha256")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_version")),
        sa.UniqueConstraint("document_id", "number", name=op.f("uq_version_document_id_number")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_version_document_id"), "version", ["document_id"], unique=False)
    op.create_index(op.f("ix_version_sha256"), "version", ["sha256"], unique=False)


def _make_citations() -> None:
    op.create_table(
        "citation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("channel_id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("page", sa.Integer(), nullable=False),
        sa.Column("quote", sa.String(), nullable=False),
        sa.Column("boxes", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["channel_id"], ["channel.id"], name=op.f("fk_citation_channel_id")),
        sa.ForeignKeyConstraint(["version_id"], ["version.id"], name=op.f("fk_citation_version_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_citation")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_citation_channel_id"), "citation", ["channel_id"], unique=False)
    op.create_index(op.f("ix_citation_version_id"), "citation", ["version_id"], unique=False)


def _make_publications() -> None:
    op.create_table(
        "publication",
        sa.Column("lease_owner", sa.String(), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("channel_id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("reading_id", sa.Uuid(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("live_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["channel_id"], ["channel.id"], name=op.f("fk_publication_channel_id")),
        sa.ForeignKeyConstraint(["reading_id"], ["reading.id"], name=op.f("fk_publication_reading_id")),
        sa.ForeignKeyConstraint(["version_id"], ["version.id"], name=op.f("fk_publication_version_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_publication")),
    )
    op.create_index(
        op.f("ix_publication_channel_id_state"), "publication", ["channel_id", "state"], unique=False
    )
    op.create_index(op.f("ix_publication_reading_id"), "publication", ["reading_id"], unique=False)
    op.create_index(op.f("ix_publication_state"), "publication", ["state"], unique=False)
    op.create_index(
        op.f("ix_publication_version_id_state"), "publication", ["version_id", "state"], unique=False
    )
