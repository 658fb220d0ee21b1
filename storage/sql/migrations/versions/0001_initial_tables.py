"""Initial tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from storage.sql.migrations.shape import write_planner_statistics

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
WIDE_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
PRESENT = sa.text("state != 'deleted'")


def upgrade() -> None:
    """Create every table; constraint names follow the convention in ``storage.sql.columns``."""
    _create_channels()
    _create_uploads()
    _create_readings()
    _create_documents()
    _create_questions()
    _create_records()
    _create_sources()
    _create_notices()
    _create_web_pages()
    _create_service_state()
    write_planner_statistics(op.get_bind())


def _lease_columns() -> tuple[sa.Column[Any], ...]:
    return (
        sa.Column("lease_owner", sa.String),
        sa.Column("lease_until", MOMENT),
        sa.Column("fence", sa.Integer, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_attempt_at", MOMENT),
        sa.Column("reason", sa.String),
    )


def _create_channels() -> None:
    op.create_table(
        "channel",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("tenant", sa.String, nullable=False, unique=True),
        sa.Column("platform", sa.String, nullable=False),
        sa.Column("installation", sa.String),
        sa.Column("conversation", sa.String),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("named_by", sa.String),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("is_direct", sa.Boolean, nullable=False),
        sa.Column("address", sa.JSON),
        sa.Column("left_at", MOMENT),
        sa.Column("created_at", MOMENT, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "channel_move",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("tenant", sa.String, nullable=False, unique=True),
        sa.Column(
            "channel_id",
            sa.Integer,
            sa.ForeignKey("channel.id", ondelete="CASCADE"),
            nullable=False,
            index=True,
        ),
        sa.Column("moved_at", MOMENT, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "folder",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("channel_id", sa.Integer, sa.ForeignKey("channel.id"), nullable=False, index=True),
        sa.Column("location", sa.String, nullable=False),
        sa.Column("watched", sa.Boolean, nullable=False),
        sa.Column("origin", sa.String, nullable=False),
        sa.Column("problem", sa.String),
        sa.Column("asked", sa.JSON),
        sa.Column("approved", sa.JSON),
        sa.Column("passwords", sa.JSON),
        sa.Column("paused", sa.Boolean, nullable=False),
        sa.Column("lease_owner", sa.String),
        sa.Column("lease_until", MOMENT),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.UniqueConstraint("channel_id", "location"),
    )


def _create_uploads() -> None:
    op.create_table(
        "upload",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("channel_id", sa.Integer, sa.ForeignKey("channel.id", ondelete="CASCADE"), nullable=False),
        sa.Column("key", sa.String, nullable=False),
        sa.Column("uploader", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("sha256", sa.String, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("address", sa.JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.UniqueConstraint("channel_id", "key"),
        sa.UniqueConstraint("channel_id", "name"),
        sqlite_autoincrement=True,
    )


def _create_readings() -> None:
    op.create_table(
        "blob",
        sa.Column("sha256", sa.String, primary_key=True),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
    )
    op.create_table(
        "reading",
        *_lease_columns(),
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("sha256", sa.String, sa.ForeignKey("blob.sha256"), nullable=False),
        sa.Column("generation", sa.String, nullable=False),
        sa.Column("rung", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("again", sa.Boolean, nullable=False),
        sa.Column("locked", sa.Boolean, nullable=False),
        sa.Column("title", sa.String, nullable=False),
        sa.Column("pages", sa.Integer, nullable=False),
        sa.Column("pages_begun", sa.Integer, nullable=False),
        sa.Column("chunks", sa.Integer, nullable=False),
        sa.Column("figures", sa.Integer, nullable=False),
        sa.Column("space", sa.String),
        sa.Column("details", sa.JSON),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("done_at", MOMENT),
        sa.UniqueConstraint("sha256", "generation", "rung"),
        sa.Index("ix_reading_queue", "state", "rung", "generation", "again", "created_at"),
        sa.Index(None, "sha256", "state"),
    )
    op.create_table(
        "cached_vector",
        sa.Column("space", sa.String, primary_key=True),
        sa.Column("text_hash", sa.String, primary_key=True),
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sa.Column("used_at", MOMENT, nullable=False, index=True),
    )


def _create_documents() -> None:
    op.create_table(
        "document",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("channel_id", sa.Integer, sa.ForeignKey("channel.id"), nullable=False),
        sa.Column("folder_id", sa.Integer, sa.ForeignKey("folder.id"), nullable=False),
        sa.Column("file", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False, index=True),
        sa.Column("reason", sa.String),
        sa.Column("stat", sa.JSON),
        sa.Column("deleted_at", MOMENT),
        sa.Column("purged_at", MOMENT),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Index(None, "channel_id", "state"),
        sa.Index(None, "folder_id", "file"),
        sa.Index(
            "uq_document_present_file",
            "folder_id",
            "file",
            unique=True,
            sqlite_where=PRESENT,
            postgresql_where=PRESENT,
        ),
    )
    op.create_table(
        "version",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("document_id", sa.Uuid, sa.ForeignKey("document.id"), nullable=False, index=True),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String, sa.ForeignKey("blob.sha256"), nullable=False, index=True),
        sa.Column("corrected", sa.JSON),
        sa.Column("locked", sa.Boolean, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.UniqueConstraint("document_id", "number"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "publication",
        *_lease_columns(),
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("channel_id", sa.Integer, sa.ForeignKey("channel.id"), nullable=False),
        sa.Column("version_id", sa.Integer, sa.ForeignKey("version.id"), nullable=False),
        sa.Column("reading_id", sa.Uuid, sa.ForeignKey("reading.id"), nullable=False, index=True),
        sa.Column("rung", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("live_at", MOMENT),
        sa.Column("retired_at", MOMENT),
        sa.Index(None, "channel_id", "state"),
        sa.Index("ix_publication_queue", "state", "rung", "created_at", "id"),
        sa.Index(None, "version_id", "state"),
    )


def _create_questions() -> None:
    op.create_table(
        "inbox",
        *_lease_columns(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("platform", sa.String, nullable=False),
        sa.Column("event_key", sa.String, nullable=False),
        sa.Column("message_key", sa.String, nullable=False),
        sa.Column("channel_id", sa.Integer, sa.ForeignKey("channel.id"), nullable=False, index=True),
        sa.Column("thread", sa.String, nullable=False),
        sa.Column("text", sa.String, nullable=False),
        sa.Column("address", sa.JSON, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("is_late", sa.Boolean, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.UniqueConstraint("platform", "event_key"),
        sa.UniqueConstraint("platform", "message_key"),
        sa.Index(None, "channel_id", "thread"),
        sa.Index(None, "state", "channel_id", "turn"),
        sa.Index(None, "state", "turn", "id"),
    )
    op.create_table(
        "outbox",
        sa.Column("inbox_id", sa.Integer, sa.ForeignKey("inbox.id"), primary_key=True),
        sa.Column("state", sa.String, nullable=False, index=True),
        sa.Column("message", sa.JSON),
        sa.Column("answer", sa.JSON),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("delivered_at", MOMENT),
        sa.Column("changed_at", MOMENT, index=True),
        sa.Column("shown_changes", sa.JSON),
        sa.Column("removed_in", sa.String),
    )
    op.create_table(
        "turn",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key", sa.String, nullable=False, unique=True),
        sa.Column("channel_id", sa.Integer, sa.ForeignKey("channel.id", ondelete="CASCADE"), nullable=False),
        sa.Column("thread", sa.String, nullable=False),
        sa.Column("question", sa.String, nullable=False),
        sa.Column("standalone", sa.String, nullable=False),
        sa.Column("answer", sa.String, nullable=False),
        sa.Column("versions", sa.JSON, nullable=False),
        sa.Column("asked_at", MOMENT, nullable=False, index=True),
        sa.Index(None, "channel_id", "thread", "asked_at"),
    )


def _create_records() -> None:
    op.create_table(
        "question_record",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key", sa.String, nullable=False),
        sa.Column("channel_id", sa.Integer, sa.ForeignKey("channel.id", ondelete="CASCADE"), nullable=False),
        sa.Column("asked_at", MOMENT, nullable=False, index=True),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("record", sa.JSON, nullable=False),
        sa.UniqueConstraint("channel_id", "key"),
        sa.Index(None, "channel_id", "asked_at"),
    )
    op.create_table(
        "feedback",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column(
            "record_id", sa.Integer, sa.ForeignKey("question_record.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("person", sa.String, nullable=False),
        sa.Column("verdict", sa.String, nullable=False),
        sa.Column("file", sa.String, nullable=False),
        sa.Column("page", sa.Integer, nullable=False),
        sa.Column("comment", sa.String, nullable=False),
        sa.Column("given_at", MOMENT, nullable=False),
        sa.UniqueConstraint("record_id", "person"),
    )


def _create_sources() -> None:
    op.create_table(
        "citation",
        sa.Column("id", WIDE_ID, primary_key=True, autoincrement=False),
        sa.Column("channel_id", sa.Integer, sa.ForeignKey("channel.id"), nullable=False, index=True),
        sa.Column("version_id", sa.Integer, sa.ForeignKey("version.id"), nullable=False, index=True),
        sa.Column("page", sa.Integer, nullable=False),
        sa.Column("quote", sa.String, nullable=False),
        sa.Column("boxes", sa.JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("answer_id", WIDE_ID, index=True),
        sa.Column("number", sa.Integer),
        sa.Column("origin_id", WIDE_ID, index=True),
        sa.Column("revoked_at", MOMENT),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "source_opening",
        sa.Column("citation_id", WIDE_ID, sa.ForeignKey("citation.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("day", sa.Date, primary_key=True),
        sa.Column(
            "channel_id",
            sa.Integer,
            sa.ForeignKey("channel.id", ondelete="CASCADE"),
            nullable=False,
            index=True,
        ),
        sa.Column("count", sa.Integer, nullable=False),
    )
    op.create_table(
        "answer_source",
        sa.Column("inbox_id", sa.Integer, sa.ForeignKey("inbox.id", ondelete="CASCADE"), primary_key=True),
        sa.Column(
            "version_id",
            sa.Integer,
            sa.ForeignKey("version.id", ondelete="CASCADE"),
            primary_key=True,
            index=True,
        ),
    )
    op.create_table(
        "subscription",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("channel_id", sa.Integer, sa.ForeignKey("channel.id", ondelete="CASCADE"), nullable=False),
        sa.Column("thread", sa.String, nullable=False),
        sa.Column(
            "version_id",
            sa.Integer,
            sa.ForeignKey("version.id", ondelete="CASCADE"),
            nullable=False,
            index=True,
        ),
        sa.Column("page", sa.Integer, nullable=False),
        sa.Column("quote", sa.String, nullable=False),
        sa.Column("language", sa.String, nullable=False),
        sa.Column("event_key", sa.String, nullable=False),
        sa.Column("address", sa.JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.UniqueConstraint("channel_id", "thread", "version_id", "page"),
        sqlite_autoincrement=True,
    )


def _create_notices() -> None:
    op.create_table(
        "notice",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("key", sa.String, unique=True),
        sa.Column("channel_id", sa.Integer, sa.ForeignKey("channel.id"), nullable=False, index=True),
        sa.Column("folder_id", sa.Integer, sa.ForeignKey("folder.id")),
        sa.Column("document_id", sa.Uuid, sa.ForeignKey("document.id")),
        sa.Column("version_id", sa.Integer, sa.ForeignKey("version.id")),
        sa.Column("text", sa.String),
        sa.Column("url", sa.String),
        sa.Column("questions", sa.JSON),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("batch", sa.String, index=True),
        sa.Column("told_in", sa.Integer, sa.ForeignKey("channel.id")),
        sa.Column("upload_id", sa.Integer),
        sa.Column("lease_until", MOMENT),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("posted_at", MOMENT),
        sa.Index(None, "state", "channel_id", "created_at"),
    )


def _create_web_pages() -> None:
    op.create_table(
        "web_page",
        sa.Column("url", sa.String, primary_key=True),
        sa.Column("sha256", sa.String),
        sa.Column("words", sa.Integer, nullable=False),
        sa.Column("listed", sa.JSON),
        sa.Column("validators", sa.JSON, nullable=False),
        sa.Column("fetched_at", MOMENT),
        sa.Column("changed_at", MOMENT),
        sa.Column("due_at", MOMENT, nullable=False, index=True),
        sa.Column("error", sa.String),
        sa.Column("failing_since", MOMENT),
    )


def _create_service_state() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", MOMENT, nullable=False, index=True),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("action", sa.String, nullable=False),
        sa.Column("channel", sa.String, nullable=False),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("is_done", sa.Boolean, nullable=False),
        sa.Column("previous", sa.String, nullable=False),
        sa.Column("digest", sa.String, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "fact",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("value", sa.String, nullable=False),
    )
    op.create_table(
        "link_key",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("secret", sa.LargeBinary, nullable=False),
        sa.Column("made_at", MOMENT, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "slack_installation",
        sa.Column("installation", sa.String, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("bot_user", sa.String, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.Column("expires_at", MOMENT),
        sa.Column("renewing_until", MOMENT),
        sa.Column("problem", sa.String),
        sa.Column("installed_at", MOMENT, nullable=False),
    )
    op.create_table(
        "api_token",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("digest", sa.String, nullable=False, unique=True),
        sa.Column("channel_id", sa.Integer, sa.ForeignKey("channel.id", ondelete="CASCADE"), index=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sqlite_autoincrement=True,
    )
