"""SQL tables: the source of truth from which blobs and index are derived.

::

    channel <- folder <- document <- version <- publication -> reading -> blob
    channel <- inbox <- outbox        channel, version <- citation <- source_opening
    channel <- notice
    channel <- upload
    channel <- api_token
    channel <- turn   channel <- question_record <- feedback        inbox, version <- answer_source
    channel <- channel_move           web_page (its documents are in a hidden channel)

Only this package sees these classes; callers get the dataclasses of ``models.py``.
Every state change is a compare-and-set on ``state`` together with ``fence``.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import JSON, BigInteger, Index, Integer, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from storage.clock import utc_now
from storage.models import Rung
from storage.sql.columns import AUTOINCREMENT, LeaseColumns, random_id, utc_column

# A file path is unique among present documents; any number of deleted ones may share it.
IS_PRESENT = "state != 'deleted'"


class QuestionRecordRow(SQLModel, table=True):
    """Trace of how one question was answered; deleted with its channel, or when its retention ends."""

    __tablename__ = "question_record"
    __table_args__ = (UniqueConstraint("channel_id", "key"), Index(None, "channel_id", "asked_at"))
    id: int = Field(default=None, primary_key=True)
    # Id of the question: answering it again overwrites the record.
    key: str
    channel_id: int = Field(foreign_key="channel.id", ondelete="CASCADE")
    asked_at: datetime = utc_column(index=True)
    state: str
    record: dict[str, Any] = Field(sa_type=JSON)


class FeedbackRow(SQLModel, table=True):
    """Feedback of one person on one answer; deleted with the record of its question."""

    __tablename__ = "feedback"
    __table_args__ = (UniqueConstraint("record_id", "person"),)
    id: int = Field(default=None, primary_key=True)
    record_id: int = Field(foreign_key="question_record.id", ondelete="CASCADE")
    # A hash that distinguishes people without naming them.
    person: str
    verdict: str
    # With ``page``: where the person says the answer is; '' and 0 if not given.
    file: str = ""
    page: int = 0
    comment: str = ""
    given_at: datetime = utc_column()


class TurnRow(SQLModel, table=True):
    """Question of a thread with its answer; deleted with its channel, or when its retention ends."""

    __tablename__ = "turn"
    __table_args__ = (Index(None, "channel_id", "thread", "asked_at"),)
    id: int = Field(default=None, primary_key=True)
    # Id of the question: answering it again adds no second turn.
    key: str = Field(unique=True)
    channel_id: int = Field(foreign_key="channel.id", ondelete="CASCADE")
    # Within the channel; '' is its main conversation.
    thread: str
    question: str
    standalone: str
    answer: str
    # Versions that the answer cited, for their documents.
    versions: list[int] = Field(sa_type=JSON)
    asked_at: datetime = utc_column(index=True)


class ChannelRow(SQLModel, table=True):
    """Conversation scope; installation and conversation are unknown until its first message."""

    __tablename__ = "channel"
    __table_args__ = AUTOINCREMENT
    id: int = Field(default=None, primary_key=True)
    tenant: str = Field(unique=True)
    platform: str
    installation: str | None = None
    conversation: str | None = None
    name: str
    # ``admin`` (the folder map) or ``platform``; an admin's name is never overwritten. None: unnamed.
    named_by: str | None = None
    epoch: int = 1
    # Its latest message came from a chat between one person and the bot.
    is_direct: bool = False
    # Reply address, as reported by the platform when the bot joined; a question's address takes precedence.
    address: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    # When its platform reported that it is gone, or that the bot left it; it is erased after a grace period.
    left_at: datetime | None = utc_column(default=None)
    created_at: datetime = utc_column(default_factory=utc_now)


class ChannelMoveRow(SQLModel, table=True):
    """Another tenant name of a channel, because its platform gave the conversation a new id.

    The newest one holds. The channel keeps the name that it was created with, and with it folder, index and
    links.
    """

    __tablename__ = "channel_move"
    __table_args__ = AUTOINCREMENT
    id: int = Field(default=None, primary_key=True)
    tenant: str = Field(unique=True)
    channel_id: int = Field(foreign_key="channel.id", ondelete="CASCADE", index=True)
    moved_at: datetime = utc_column(default_factory=utc_now)


class FolderRow(SQLModel, table=True):
    """Source folder of one channel: watched (scans add, replace and delete) or ingested by hand."""

    __tablename__ = "folder"
    __table_args__ = (UniqueConstraint("channel_id", "location"),)
    id: int = Field(default=None, primary_key=True)
    channel_id: int = Field(foreign_key="channel.id", index=True)
    # Absolute path or URL.
    location: str
    watched: bool
    # Who configured it: ``inbox`` (a folder of the inbox), ``map`` (folders.toml) or ``hand`` (``ingest``).
    origin: str = "hand"
    # Why the last scan was not trusted; None if all was well.
    problem: str | None = None
    # Ids of documents whose files vanished at once; an admin must approve their deletion.
    asked: list[str] | None = Field(default=None, sa_type=JSON)
    # Those of ``asked`` whose deletion an admin approved; the next scan deletes what is still missing.
    approved: list[str] | None = Field(default=None, sa_type=JSON)
    # References to the passwords of its PDFs, as in the folder map; never a password.
    passwords: list[str] | None = Field(default=None, sa_type=JSON)
    # An admin paused its scans in a chat.
    paused: bool = False
    lease_owner: str | None = None
    # Only the process that holds the lease scans the folder.
    lease_until: datetime | None = utc_column(default=None)
    created_at: datetime = utc_column(default_factory=utc_now)


class DocumentRow(SQLModel, table=True):
    """Logical file of a channel; ``state``: present, quarantined or deleted."""

    __tablename__ = "document"
    __table_args__ = (
        Index(None, "folder_id", "file"),
        Index(None, "channel_id", "state"),
        Index(
            "uq_document_present_file",
            "folder_id",
            "file",
            unique=True,
            sqlite_where=text(IS_PRESENT),
            postgresql_where=text(IS_PRESENT),
        ),
    )
    id: UUID = Field(default_factory=uuid4, primary_key=True)
    channel_id: int = Field(foreign_key="channel.id")
    folder_id: int = Field(foreign_key="folder.id")
    # Path inside the folder, with ``/``; free for a new document once this one is deleted.
    file: str
    state: str = Field(default="present", index=True)
    # Why the newest bytes of the file could not be stored: a message for an admin.
    reason: str | None = None
    # Size, times and inode when the file was last stored: a file with the same stat is not opened again.
    stat: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    deleted_at: datetime | None = utc_column(default=None)
    # When the purge of its exclusive data began: from then on it cannot be restored.
    purged_at: datetime | None = utc_column(default=None)
    created_at: datetime = utc_column(default_factory=utc_now)


class BlobRow(SQLModel, table=True):
    """Content in the blob store."""

    __tablename__ = "blob"
    sha256: str = Field(primary_key=True)
    size: int
    created_at: datetime = utc_column(default_factory=utc_now)


class VersionRow(SQLModel, table=True):
    """Content of a document; the highest ``number`` is the newest."""

    __tablename__ = "version"
    __table_args__ = (UniqueConstraint("document_id", "number"), AUTOINCREMENT)
    id: int = Field(default=None, primary_key=True)
    document_id: UUID = Field(foreign_key="document.id", index=True)
    number: int
    sha256: str = Field(foreign_key="blob.sha256", index=True)
    # Metadata corrected by an admin, by field; "" hides a field.
    corrected: dict[str, str] | None = Field(default=None, sa_type=JSON)
    # The content was read with another folder's password, and the document's folder has none for it.
    locked: bool = False
    created_at: datetime = utc_column(default_factory=utc_now)


class ReadingRow(LeaseColumns, table=True):
    """Reading of one content by one generation; ``state``: waiting, done or failed."""

    __tablename__ = "reading"
    __table_args__ = (
        UniqueConstraint("sha256", "generation", "rung"),
        Index(None, "sha256", "state"),
        Index("ix_reading_queue", "state", "rung", "generation", "again", "created_at"),
    )
    id: UUID = Field(default_factory=uuid4, primary_key=True)
    sha256: str = Field(foreign_key="blob.sha256")
    generation: str
    rung: str
    state: str = Field(default="waiting")
    # A reading of another generation answers until this one is done, so it waits behind new content.
    again: bool = False
    # It failed because no known password opens the file: a new one may.
    locked: bool = False
    title: str = ""
    pages: int = 0
    # Pages done while in progress: a lost reading that is made again still answers.
    pages_begun: int = 0
    chunks: int = 0
    # Pictures and charts, which the index holds after the chunks.
    figures: int = 0
    # Vector space of a full reading: vectors of two spaces are never compared.
    space: str | None = None
    # For admins: pages without text, hidden words dropped, milliseconds.
    details: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    created_at: datetime = utc_column(default_factory=utc_now)
    done_at: datetime | None = utc_column(default=None)


class PublicationRow(LeaseColumns, table=True):
    """Publication of a reading of one version in one tenant; ``state``: pending, live, retired or removed.

    The objects in the index carry its id. A write of unknown outcome retires the row and a new one is made,
    because an engine may skip a repeated write.
    """

    __tablename__ = "publication"
    __table_args__ = (
        Index(None, "channel_id", "state"),
        Index(None, "version_id", "state"),
        Index("ix_publication_queue", "state", "rung", "created_at", "id"),
    )
    id: UUID = Field(default_factory=uuid4, primary_key=True)
    channel_id: int = Field(foreign_key="channel.id")
    version_id: int = Field(foreign_key="version.id")
    reading_id: UUID = Field(foreign_key="reading.id", index=True)
    # Copied from the reading, so that the queue index serves each rung separately.
    rung: str = Rung.QUICK.value
    state: str = Field(default="pending")
    created_at: datetime = utc_column(default_factory=utc_now)
    live_at: datetime | None = utc_column(default=None)
    retired_at: datetime | None = utc_column(default=None)


class InboxRow(LeaseColumns, table=True):
    """Verified event, committed before it is acknowledged; ``state``: waiting, done or failed."""

    __tablename__ = "inbox"
    __table_args__ = (
        UniqueConstraint("platform", "event_key"),
        UniqueConstraint("platform", "message_key"),
        Index(None, "channel_id", "thread"),
        Index(None, "state", "turn", "id"),
        Index(None, "state", "channel_id", "turn"),
    )
    id: int = Field(default=None, primary_key=True)
    platform: str
    # Event id of the platform, with its installation.
    event_key: str
    # Id of the message: one message may arrive as several events.
    message_key: str
    channel_id: int = Field(foreign_key="channel.id", index=True)
    thread: str
    text: str
    # Reply address, in the format of the platform's adapter.
    address: dict[str, Any] = Field(sa_type=JSON)
    state: str = "waiting"
    # Waiting questions are claimed by turn; those of one channel have consecutive ones.
    turn: int = 0
    # Its asker exceeded the rate limit: later questions of its channel may have earlier turns.
    is_late: bool = False
    created_at: datetime = utc_column(default_factory=utc_now)


class OutboxRow(SQLModel, table=True):
    """Reply to an inbox row; ``state``: posting, placed or delivered."""

    __tablename__ = "outbox"
    inbox_id: int = Field(foreign_key="inbox.id", primary_key=True)
    state: str = Field(default="posting", index=True)
    # The placeholder's id on the platform, once it is known.
    message: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    answer: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    created_at: datetime = utc_column(default_factory=utc_now)
    delivered_at: datetime | None = utc_column(default=None)
    # When a document that the answer cites was last replaced, withdrawn or restored; during an update of its
    # message, the time of the retry. None: the message is up to date.
    changed_at: datetime | None = utc_column(default=None, index=True)
    # Source changes shown in the message: cited version -> the newer one, 0 for a withdrawn document.
    shown_changes: dict[str, int] | None = Field(default=None, sa_type=JSON)
    # Language in which the message of an erased answer is to say so; None: not erased.
    removed_in: str | None = None


class AnswerSourceRow(SQLModel, table=True):
    """Version that the answer to a question cites."""

    __tablename__ = "answer_source"
    inbox_id: int = Field(foreign_key="inbox.id", ondelete="CASCADE", primary_key=True)
    version_id: int = Field(foreign_key="version.id", ondelete="CASCADE", primary_key=True, index=True)


class SubscriptionRow(SQLModel, table=True):
    """Thread that is notified when a page changes; deleted with its channel, or the version's document."""

    __tablename__ = "subscription"
    __table_args__ = (UniqueConstraint("channel_id", "thread", "version_id", "page"), AUTOINCREMENT)
    id: int = Field(default=None, primary_key=True)
    channel_id: int = Field(foreign_key="channel.id", ondelete="CASCADE")
    thread: str
    # The last version that the thread was notified of.
    version_id: int = Field(foreign_key="version.id", ondelete="CASCADE", index=True)
    page: int
    # Quote from the page, by which it is found in the next version.
    quote: str
    language: str
    # Event key of the message that subscribed; notifications derive their keys from it.
    event_key: str
    # Address of the thread, in the format of its platform's adapter.
    address: dict[str, Any] = Field(sa_type=JSON)
    created_at: datetime = utc_column(default_factory=utc_now)


class UploadRow(SQLModel, table=True):
    """PDF that somebody uploaded in a chat, stored in its channel's folder; deleted with both."""

    __tablename__ = "upload"
    __table_args__ = (
        UniqueConstraint("channel_id", "key"),
        UniqueConstraint("channel_id", "name"),
        AUTOINCREMENT,
    )
    id: int = Field(default=None, primary_key=True)
    channel_id: int = Field(foreign_key="channel.id", ondelete="CASCADE")
    # Id of the message and the file in it, as given by its platform.
    key: str
    # Person, in the format of FOOTNOTE_ADMINS.
    uploader: str
    # Name of the file in the folder of uploads.
    name: str
    sha256: str
    # Bytes.
    size: int = Field(sa_type=BigInteger)
    # Where to post its receipt, in the format of its platform's adapter.
    address: dict[str, Any] = Field(sa_type=JSON)
    created_at: datetime = utc_column(default_factory=utc_now)


class CitationRow(SQLModel, table=True):
    """Target of a source button."""

    __tablename__ = "citation"
    __table_args__ = AUTOINCREMENT
    # Random, not counted: a database restored from a backup must not reuse the id of an old link.
    id: int = Field(
        default_factory=random_id, sa_type=BigInteger().with_variant(Integer, "sqlite"), primary_key=True
    )
    channel_id: int = Field(foreign_key="channel.id", index=True)
    version_id: int = Field(foreign_key="version.id", index=True)
    page: int
    quote: str
    boxes: list[list[float]] = Field(sa_type=JSON)
    created_at: datetime = utc_column(default_factory=utc_now)
    # Shared by the quotes of one answer; None for a figure, and for a page without a quote.
    answer_id: int | None = Field(
        default=None, sa_type=BigInteger().with_variant(Integer, "sqlite"), index=True
    )
    # [n] of the quote in its answer.
    number: int | None = None
    # The citation of another version from which it was made; revoked together with it.
    origin_id: int | None = Field(
        default=None, sa_type=BigInteger().with_variant(Integer, "sqlite"), index=True
    )
    # Since then, no link to it opens anything.
    revoked_at: datetime | None = utc_column(default=None)


class SourceOpeningRow(SQLModel, table=True):
    """Number of times a source was opened on one day, without personal data; deleted with its citation."""

    __tablename__ = "source_opening"
    citation_id: int = Field(
        foreign_key="citation.id",
        ondelete="CASCADE",
        sa_type=BigInteger().with_variant(Integer, "sqlite"),
        primary_key=True,
    )
    # UTC.
    day: date = Field(primary_key=True)
    channel_id: int = Field(foreign_key="channel.id", ondelete="CASCADE", index=True)
    count: int


class NoticeRow(SQLModel, table=True):
    """Event to be posted once; ``state``: waiting, posting, posted, kept or dropped.

    A kept one is shown in the console only, a dropped one nowhere.
    """

    __tablename__ = "notice"
    __table_args__ = (Index(None, "state", "channel_id", "created_at"),)
    id: int = Field(default=None, primary_key=True)
    # ``live`` (a version answers for the first time), ``failed`` (a file cannot be read), ``stranger`` (an
    # unsupported file), ``folder``; ``source failed`` (a web page has failed for a week), ``source changed``
    # (a web page no longer contains what was quoted); ``welcome`` (the bot joined the channel); ``digest`` (a
    # week of its questions is over); ``outage`` (a part of the service fails, or works again);
    # ``summary`` (the usage of a month that is over).
    kind: str
    # Idempotency key, for an event that is posted only once.
    key: str | None = Field(default=None, unique=True)
    # Channel of the documents.
    channel_id: int = Field(foreign_key="channel.id", index=True)
    folder_id: int | None = Field(default=None, foreign_key="folder.id")
    document_id: UUID | None = Field(default=None, foreign_key="document.id")
    version_id: int | None = Field(default=None, foreign_key="version.id")
    # What happened, if the tables do not say: a message for an admin, or the quote that is gone.
    text: str | None = None
    # Address of the web page.
    url: str | None = None
    # Sample questions that the version answers.
    questions: list[str] | None = Field(default=None, sa_type=JSON)
    state: str = Field(default="waiting")
    # Id of the message that posts it together with others.
    batch: str | None = Field(default=None, index=True)
    # Channel of that message.
    told_in: int | None = Field(default=None, foreign_key="channel.id")
    # Upload that brought the file: posted as a reply to it. No foreign key: it may be deleted first.
    upload_id: int | None = None
    # Until then, only the process that made the batch posts it.
    lease_until: datetime | None = utc_column(default=None)
    created_at: datetime = utc_column(default_factory=utc_now)
    posted_at: datetime | None = utc_column(default=None)


class WebPageRow(SQLModel, table=True):
    """Approved address: its last fetch and the time of the next; its text is a document of this name."""

    __tablename__ = "web_page"
    url: str = Field(primary_key=True)
    # Of the text that was read in the newest version; None for a sitemap, and for a page that was never read.
    sha256: str | None = None
    # Number of its words.
    words: int = 0
    # Pages listed by a sitemap.
    listed: list[str] | None = Field(default=None, sa_type=JSON)
    # Headers of a conditional request.
    validators: dict[str, str] = Field(default_factory=dict, sa_type=JSON)
    # When the server last confirmed this text.
    fetched_at: datetime | None = utc_column(default=None)
    # When the text last changed.
    changed_at: datetime | None = utc_column(default=None)
    # Time of the next fetch; the fetching process moves it forward first.
    due_at: datetime = utc_column(default_factory=utc_now, index=True)
    # Why the last fetch failed: a message for an admin.
    error: str | None = None
    failing_since: datetime | None = utc_column(default=None)


class CachedVectorRow(SQLModel, table=True):
    """Cached embedding: the same text is never embedded twice in one vector space."""

    __tablename__ = "cached_vector"
    space: str = Field(primary_key=True)
    # BLAKE2b-128 of the text, in hexadecimal digits.
    text_hash: str = Field(primary_key=True)
    # float32, little-endian.
    vector: bytes
    used_at: datetime = utc_column(default_factory=utc_now, index=True)


class AuditRow(SQLModel, table=True):
    """Audit entry of a privileged or irreversible action: ids, no words of people."""

    __tablename__ = "audit"
    __table_args__ = AUTOINCREMENT
    id: int = Field(default=None, primary_key=True)
    at: datetime = utc_column(default_factory=utc_now, index=True)
    # Person, in the format of FOOTNOTE_ADMINS.
    actor: str
    action: str
    # Tenant name of the channel in which it was requested; it outlives the channel.
    channel: str
    # Number of a folder or an upload, id of a document, a thread, another tenant name.
    subject: str = ""
    # False: refused.
    is_done: bool = True
    # Digest of the previous entry.
    previous: str = ""
    # Digest of this entry and the previous one, as computed by ``storage.sql.audit.digest_of``.
    digest: str = ""


class FactRow(SQLModel, table=True):
    """Property of this home that must not change unnoticed, such as its embedder."""

    __tablename__ = "fact"
    name: str = Field(primary_key=True)
    value: str


class LinkKeyRow(SQLModel, table=True):
    """Key that signs links, or the previous one, which still verifies them; older ones are deleted."""

    __tablename__ = "link_key"
    __table_args__ = AUTOINCREMENT
    id: int = Field(default=None, primary_key=True)
    # 0 to 255, as carried by the links that it signed.
    number: int
    secret: bytes
    made_at: datetime = utc_column(default_factory=utc_now)


class ApiTokenRow(SQLModel, table=True):
    """Bearer token of a program that uses the API; deleted with its channel, or when it is revoked."""

    __tablename__ = "api_token"
    __table_args__ = AUTOINCREMENT
    id: int = Field(default=None, primary_key=True)
    name: str
    # SHA-256 of the token, in hexadecimal digits.
    digest: str = Field(unique=True)
    # None: all channels.
    channel_id: int | None = Field(default=None, foreign_key="channel.id", ondelete="CASCADE", index=True)
    created_at: datetime = utc_column(default_factory=utc_now)


class SlackInstallationRow(SQLModel, table=True):
    """Slack workspace or organisation that installed the app; deleted when the app is removed."""

    __tablename__ = "slack_installation"
    # As in the keys of its channels: the organisation's id of an org-wide install, else the workspace's.
    installation: str = Field(primary_key=True)
    name: str
    bot_user: str
    # The tokens, encrypted.
    sealed: bytes
    # When the token expires; None: never.
    expires_at: datetime | None = utc_column(default=None)
    # Until then, one process renews the token, or backs off after a failure.
    renewing_until: datetime | None = utc_column(default=None)
    # Why the token could not be renewed: a message for an admin.
    problem: str | None = None
    installed_at: datetime = utc_column(default_factory=utc_now)
