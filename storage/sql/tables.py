"""The SQL tables: the truth that blobs and index are derived from.

::

    channel <- folder <- document <- version <- publication -> reading -> blob
    channel <- inbox <- outbox        channel, version <- citation <- source_opening
    channel <- notice
    channel <- upload
    channel <- turn   channel <- question_record <- feedback        inbox, version <- answer_source
    web_page -> web_text <- web_citation -> channel <- channel_move

Only this package sees these classes; callers get the dataclasses of ``models.py``.
Every step of the journey is a compare-and-set on ``state`` together with ``fence``.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import JSON, BigInteger, Index, Integer, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from storage.clock import utc_now
from storage.models import Rung
from storage.sql.columns import AUTOINCREMENT, LeaseColumns, moment, random_id

# Only one document at a time has a file, but any number of deleted ones may have had it.
IS_PRESENT = "state != 'deleted'"


class QuestionRecordRow(SQLModel, table=True):
    """How one question was answered; it goes with its channel, and after the time it is kept."""

    __tablename__ = "question_record"
    __table_args__ = (UniqueConstraint("channel_id", "key"), Index(None, "channel_id", "asked_at"))
    id: int = Field(default=None, primary_key=True)
    # Id of the question: one that is answered again has one record.
    key: str
    channel_id: int = Field(foreign_key="channel.id", ondelete="CASCADE")
    asked_at: datetime = moment(index=True)
    state: str
    record: dict[str, Any] = Field(sa_type=JSON)


class FeedbackRow(SQLModel, table=True):
    """What one person said of one answer; it goes with the record of its question."""

    __tablename__ = "feedback"
    __table_args__ = (UniqueConstraint("record_id", "person"),)
    id: int = Field(default=None, primary_key=True)
    record_id: int = Field(foreign_key="question_record.id", ondelete="CASCADE")
    # A hash: two of them are told apart, and nobody is named.
    person: str
    verdict: str
    # With ``page``: where the answer stands, as the person says; '' and 0 where none was named.
    file: str = ""
    page: int = 0
    comment: str = ""
    given_at: datetime = moment()


class TurnRow(SQLModel, table=True):
    """One question of a thread with its answer; it goes with its channel, and after the time it is kept."""

    __tablename__ = "turn"
    __table_args__ = (Index(None, "channel_id", "thread", "asked_at"),)
    id: int = Field(default=None, primary_key=True)
    # Id of the question: one that is answered again is remembered once.
    key: str = Field(unique=True)
    channel_id: int = Field(foreign_key="channel.id", ondelete="CASCADE")
    # Within the channel; '' is its running conversation.
    thread: str
    question: str
    standalone: str
    answer: str
    # Those that the answer cited, for their documents.
    versions: list[int] = Field(sa_type=JSON)
    asked_at: datetime = moment(index=True)


class ChannelRow(SQLModel, table=True):
    """One conversation scope; installation and conversation are unknown until it first speaks."""

    __tablename__ = "channel"
    __table_args__ = AUTOINCREMENT
    id: int = Field(default=None, primary_key=True)
    tenant: str = Field(unique=True)
    platform: str
    installation: str | None = None
    conversation: str | None = None
    name: str
    # ``admin`` (the folder map) or ``platform``; an admin's name stays. None: nobody that we know of.
    named_by: str | None = None
    epoch: int = 1
    # Its newest message came from a chat between one person and the bot.
    is_direct: bool = False
    # Where it is reached, as its platform said when we joined it; a question's own address comes first.
    address: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    # When its platform said that it is gone, or that we are no more in it; it is erased after a while.
    left_at: datetime | None = moment(default=None)
    created_at: datetime = moment(default_factory=utc_now)


class ChannelMoveRow(SQLModel, table=True):
    """Another tenant name of a channel, since its platform gave the conversation another id.

    The newest holds. The channel keeps the name that it was made with, and with it folder, index and links.
    """

    __tablename__ = "channel_move"
    __table_args__ = AUTOINCREMENT
    id: int = Field(default=None, primary_key=True)
    tenant: str = Field(unique=True)
    channel_id: int = Field(foreign_key="channel.id", ondelete="CASCADE", index=True)
    moved_at: datetime = moment(default_factory=utc_now)


class FolderRow(SQLModel, table=True):
    """A place that feeds one channel: watched (scans add, replace and delete) or ingested by hand."""

    __tablename__ = "folder"
    __table_args__ = (UniqueConstraint("channel_id", "location"),)
    id: int = Field(default=None, primary_key=True)
    channel_id: int = Field(foreign_key="channel.id", index=True)
    # Absolute path or URL.
    location: str
    watched: bool
    # Who wants it: ``inbox`` (a folder of the inbox), ``map`` (folders.toml) or ``hand`` (``ingest``).
    origin: str = "hand"
    # Why the last scan could not trust what it saw; None when all was well.
    problem: str | None = None
    # Ids of the documents whose files vanished at once and whose deletion waits for an admin's word.
    asked: list[str] | None = Field(default=None, sa_type=JSON)
    # Those of ``asked`` that an admin allowed to go; the next scan deletes what is still missing.
    approved: list[str] | None = Field(default=None, sa_type=JSON)
    # References to the passwords of its PDFs, as the folder map names them; never a password itself.
    passwords: list[str] | None = Field(default=None, sa_type=JSON)
    # An admin said in a chat that it is not to be scanned now.
    paused: bool = False
    lease_owner: str | None = None
    # Only the process that holds the lease scans the folder.
    lease_until: datetime | None = moment(default=None)
    created_at: datetime = moment(default_factory=utc_now)


class DocumentRow(SQLModel, table=True):
    """One logical file of a channel; ``state``: present, quarantined or deleted."""

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
    # Path inside the folder, with ``/``; a deleted document leaves its name to whoever comes next.
    file: str
    state: str = Field(default="present", index=True)
    # Why the newest bytes of the file could not even be stored: a sentence for an admin.
    reason: str | None = None
    # Size, times and inode when the file was last stored: a file of the same stat is not opened again.
    stat: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    deleted_at: datetime | None = moment(default=None)
    # When a purge began on what only it had: from then on nothing brings it back.
    purged_at: datetime | None = moment(default=None)
    created_at: datetime = moment(default_factory=utc_now)


class BlobRow(SQLModel, table=True):
    """A content that the blob store holds."""

    __tablename__ = "blob"
    sha256: str = Field(primary_key=True)
    size: int
    created_at: datetime = moment(default_factory=utc_now)


class VersionRow(SQLModel, table=True):
    """One content of a document; the highest ``number`` is the newest."""

    __tablename__ = "version"
    __table_args__ = (UniqueConstraint("document_id", "number"), AUTOINCREMENT)
    id: int = Field(default=None, primary_key=True)
    document_id: UUID = Field(foreign_key="document.id", index=True)
    number: int
    sha256: str = Field(foreign_key="blob.sha256", index=True)
    # Metadata as an admin says it is, by field; "" where nothing should be said.
    corrected: dict[str, str] | None = Field(default=None, sa_type=JSON)
    # The content was read with another folder's password, and the document's own folder has none for it.
    locked: bool = False
    created_at: datetime = moment(default_factory=utc_now)


class ReadingRow(LeaseColumns, table=True):
    """What one generation made of one content; ``state``: waiting, done or failed."""

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
    # Another generation's reading of the content answers meanwhile: it waits behind what is new.
    again: bool = False
    # It failed because no password that is known opens the file: another one may.
    locked: bool = False
    title: str = ""
    pages: int = 0
    # While it is on its way, those that are done so far: a lost reading that is made again still answers.
    pages_begun: int = 0
    chunks: int = 0
    # Pictures and charts, which the index holds behind the chunks.
    figures: int = 0
    # The vector space of a full reading: vectors of two spaces are never compared.
    space: str | None = None
    # What an admin may want to know: pages without text, hidden words dropped, milliseconds.
    details: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    created_at: datetime = moment(default_factory=utc_now)
    done_at: datetime | None = moment(default=None)


class PublicationRow(LeaseColumns, table=True):
    """One reading of one version in one tenant; ``state``: pending, live, retired or removed.

    Its id is what the objects in the index carry. A write whose outcome is unknown retires the row
    and a new one is made, because an engine may skip a repeated write.
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
    # The reading's: the next one of a rung is found without reading those of the other.
    rung: str = Rung.QUICK.value
    state: str = Field(default="pending")
    created_at: datetime = moment(default_factory=utc_now)
    live_at: datetime | None = moment(default=None)
    retired_at: datetime | None = moment(default=None)


class InboxRow(LeaseColumns, table=True):
    """A verified event, committed before it is acknowledged; ``state``: waiting, done or failed."""

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
    # The platform's event id, with its installation.
    event_key: str
    # The message itself: one message may arrive as several events.
    message_key: str
    channel_id: int = Field(foreign_key="channel.id", index=True)
    thread: str
    text: str
    # Where to reply, as the platform's adapter wants it.
    address: dict[str, Any] = Field(sa_type=JSON)
    state: str = "waiting"
    # Waiting questions are taken up by turn; those of one channel have one after another.
    turn: int = 0
    # Its asker asked too much: later ones of its channel may have earlier turns.
    is_late: bool = False
    created_at: datetime = moment(default_factory=utc_now)


class OutboxRow(SQLModel, table=True):
    """The one reply to an inbox row; ``state``: posting, placed or delivered."""

    __tablename__ = "outbox"
    inbox_id: int = Field(foreign_key="inbox.id", primary_key=True)
    state: str = Field(default="posting", index=True)
    # The placeholder as the platform names it, once it is known.
    message: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    answer: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    created_at: datetime = moment(default_factory=utc_now)
    delivered_at: datetime | None = moment(default=None)
    # When a document that the answer cites was last replaced, withdrawn or brought back; while its message is
    # updated, when that is tried again. None: the message says how things are.
    changed_at: datetime | None = moment(default=None, index=True)
    # What the message says of its sources: cited version -> the newer one, 0 of a withdrawn document.
    shown_changes: dict[str, int] | None = Field(default=None, sa_type=JSON)
    # The answer was erased: the language in which its message is to say so. None: it was not.
    removed_in: str | None = None


class AnswerSourceRow(SQLModel, table=True):
    """A version that the answer to a question cites."""

    __tablename__ = "answer_source"
    inbox_id: int = Field(foreign_key="inbox.id", ondelete="CASCADE", primary_key=True)
    version_id: int = Field(foreign_key="version.id", ondelete="CASCADE", primary_key=True, index=True)


class SubscriptionRow(SQLModel, table=True):
    """A thread that is told when a page changes; it goes with its channel, or the version's document."""

    __tablename__ = "subscription"
    __table_args__ = (UniqueConstraint("channel_id", "thread", "version_id", "page"), AUTOINCREMENT)
    id: int = Field(default=None, primary_key=True)
    channel_id: int = Field(foreign_key="channel.id", ondelete="CASCADE")
    thread: str
    # The last one that the thread was told of.
    version_id: int = Field(foreign_key="version.id", ondelete="CASCADE", index=True)
    page: int
    # What was quoted of the page, by which it is found in the next version.
    quote: str
    language: str
    # Of the message that asked for it; its notes are named after it.
    event_key: str
    # Where the thread is, as its platform's adapter wants it.
    address: dict[str, Any] = Field(sa_type=JSON)
    created_at: datetime = moment(default_factory=utc_now)


class UploadRow(SQLModel, table=True):
    """A PDF that somebody uploaded in a chat and that lies in its channel's folder; it goes with both."""

    __tablename__ = "upload"
    __table_args__ = (
        UniqueConstraint("channel_id", "key"),
        UniqueConstraint("channel_id", "name"),
        AUTOINCREMENT,
    )
    id: int = Field(default=None, primary_key=True)
    channel_id: int = Field(foreign_key="channel.id", ondelete="CASCADE")
    # Of the message and the file in it, as its platform names them.
    key: str
    # As FOOTNOTE_ADMINS names people.
    uploader: str
    # Of the file in the folder of uploads.
    name: str
    sha256: str
    # In bytes.
    size: int = Field(sa_type=BigInteger)
    # Where its receipt is posted, as its platform's adapter wants it.
    address: dict[str, Any] = Field(sa_type=JSON)
    created_at: datetime = moment(default_factory=utc_now)


class CitationRow(SQLModel, table=True):
    """What a source button opens."""

    __tablename__ = "citation"
    __table_args__ = AUTOINCREMENT
    # By chance, not counted: a database restored from a backup must not give an old link's id again.
    id: int = Field(
        default_factory=random_id, sa_type=BigInteger().with_variant(Integer, "sqlite"), primary_key=True
    )
    channel_id: int = Field(foreign_key="channel.id", index=True)
    version_id: int = Field(foreign_key="version.id", index=True)
    page: int
    quote: str
    boxes: list[list[float]] = Field(sa_type=JSON)
    created_at: datetime = moment(default_factory=utc_now)
    # What the quotes of one answer have in common; none of a figure, nor of a page without a quote.
    answer_id: int | None = Field(
        default=None, sa_type=BigInteger().with_variant(Integer, "sqlite"), index=True
    )
    # The [n] of the quote in its answer.
    number: int | None = None
    # The citation of another version that it was made from: it is revoked with that one.
    origin_id: int | None = Field(
        default=None, sa_type=BigInteger().with_variant(Integer, "sqlite"), index=True
    )
    # Since then no link to it opens anything.
    revoked_at: datetime | None = moment(default=None)


class SourceOpeningRow(SQLModel, table=True):
    """How often people opened a source on one day: no word of who they are. It goes with its citation."""

    __tablename__ = "source_opening"
    citation_id: int = Field(
        foreign_key="citation.id",
        ondelete="CASCADE",
        sa_type=BigInteger().with_variant(Integer, "sqlite"),
        primary_key=True,
    )
    # In UTC.
    day: date = Field(primary_key=True)
    channel_id: int = Field(foreign_key="channel.id", ondelete="CASCADE", index=True)
    count: int


class NoticeRow(SQLModel, table=True):
    """An event to be posted once; ``state``: waiting, posting, posted, kept or dropped.

    A kept one is shown in the console only, a dropped one nowhere.
    """

    __tablename__ = "notice"
    __table_args__ = (Index(None, "state", "channel_id", "created_at"),)
    id: int = Field(default=None, primary_key=True)
    # ``live`` (a version answers for the first time), ``failed`` (a file cannot be read), ``stranger`` (a
    # file is no document), ``folder``; ``source failed`` (a web page has failed for a week), ``source
    # changed`` (what was quoted of a web page stands there no more); ``welcome`` (we joined the channel);
    # ``digest`` (a week of its questions is over); ``outage`` (a part of the service does not work, or works
    # again).
    kind: str
    # What makes it unique, for an event that is posted only once.
    key: str | None = Field(default=None, unique=True)
    # Whose documents it is about.
    channel_id: int = Field(foreign_key="channel.id", index=True)
    folder_id: int | None = Field(default=None, foreign_key="folder.id")
    document_id: UUID | None = Field(default=None, foreign_key="document.id")
    version_id: int | None = Field(default=None, foreign_key="version.id")
    # What happened, when the tables do not say: a sentence for an admin, or a quote that is gone.
    text: str | None = None
    # Of the web page.
    url: str | None = None
    # Questions that were tried and that the version answers.
    questions: list[str] | None = Field(default=None, sa_type=JSON)
    state: str = Field(default="waiting")
    # The message that posts it together with others.
    batch: str | None = Field(default=None, index=True)
    # The channel of that message.
    told_in: int | None = Field(default=None, foreign_key="channel.id")
    # Of the upload that brought the file: told below it. One that was removed since leaves its number.
    upload_id: int | None = None
    # Until then the process that made the batch posts it.
    lease_until: datetime | None = moment(default=None)
    created_at: datetime = moment(default_factory=utc_now)
    posted_at: datetime | None = moment(default=None)


class WebTextRow(SQLModel, table=True):
    """What was read of a web page at one time; it stays for as long as the page or a citation needs it."""

    __tablename__ = "web_text"
    # Of title and chunks.
    sha256: str = Field(primary_key=True)
    title: str
    # When the page says it was changed, as in 2024-03-01; '' where it does not.
    day: str
    words: int
    # [text, tokens, heading path, anchor, page] each.
    chunks: list[list[Any]] = Field(sa_type=JSON)
    # Of the vectors; None while they were not made yet.
    space: str | None = None
    # Of the chunks, one after the other: float32, little-endian.
    vectors: bytes | None = None
    created_at: datetime = moment(default_factory=utc_now)


class WebPageRow(SQLModel, table=True):
    """An approved address: what was fetched of it, and when it is fetched again."""

    __tablename__ = "web_page"
    url: str = Field(primary_key=True)
    # The text that answers; None of a sitemap, and of a page that was never read.
    sha256: str | None = Field(default=None, foreign_key="web_text.sha256", index=True)
    # Of a sitemap: the pages that it lists.
    listed: list[str] | None = Field(default=None, sa_type=JSON)
    # Headers that ask for the page only if it has changed.
    validators: dict[str, str] = Field(default_factory=dict, sa_type=JSON)
    # When the server last said that this is its text.
    fetched_at: datetime | None = moment(default=None)
    # When the text last became another one.
    changed_at: datetime | None = moment(default=None)
    # When it is fetched again; whoever fetches it puts this forward first.
    due_at: datetime = moment(default_factory=utc_now, index=True)
    # Why the last fetch failed: a sentence for an admin.
    error: str | None = None
    failing_since: datetime | None = moment(default=None)


class WebCitationRow(SQLModel, table=True):
    """A quote of a web page that was shown; it keeps the text it came from."""

    __tablename__ = "web_citation"
    id: int = Field(default=None, primary_key=True)
    channel_id: int = Field(foreign_key="channel.id", ondelete="CASCADE", index=True)
    url: str = Field(index=True)
    sha256: str = Field(foreign_key="web_text.sha256", index=True)
    quote: str
    created_at: datetime = moment(default_factory=utc_now, index=True)


class CachedVectorRow(SQLModel, table=True):
    """A vector that was already paid for: the same text is never embedded twice in one space."""

    __tablename__ = "cached_vector"
    space: str = Field(primary_key=True)
    # BLAKE2b-128 of the text, in hexadecimal digits.
    text_hash: str = Field(primary_key=True)
    # float32, little-endian.
    vector: bytes
    used_at: datetime = moment(default_factory=utc_now, index=True)


class AuditRow(SQLModel, table=True):
    """What was done that only some may do, or that cannot be undone: ids, and no words of people."""

    __tablename__ = "audit"
    __table_args__ = AUTOINCREMENT
    id: int = Field(default=None, primary_key=True)
    at: datetime = moment(default_factory=utc_now, index=True)
    # As FOOTNOTE_ADMINS names people.
    actor: str
    action: str
    # The tenant name of where it was said: it outlives the channel.
    channel: str
    # A folder's or an upload's number, a document's id, a thread, another tenant name.
    subject: str = ""
    # False: it was refused.
    is_done: bool = True
    # Digest of the entry before it.
    previous: str = ""
    # Of itself and that one, as ``storage.sql.audit.digest_of`` computes it.
    digest: str = ""


class FactRow(SQLModel, table=True):
    """A fact about this home that must not change unnoticed, such as its embedder."""

    __tablename__ = "fact"
    name: str = Field(primary_key=True)
    value: str


class LinkKeyRow(SQLModel, table=True):
    """A key that signs links, or signed them until the last one came; the one before is gone."""

    __tablename__ = "link_key"
    __table_args__ = AUTOINCREMENT
    id: int = Field(default=None, primary_key=True)
    # 0 to 255, as the links carry it that it signed.
    number: int
    secret: bytes
    made_at: datetime = moment(default_factory=utc_now)


class SlackInstallationRow(SQLModel, table=True):
    """A Slack workspace, or a whole organisation, that installed the app; it goes when they remove it."""

    __tablename__ = "slack_installation"
    # As in the keys of its channels: the organisation's id of an org-wide install, else the workspace's.
    installation: str = Field(primary_key=True)
    name: str
    bot_user: str
    # The tokens, encrypted.
    sealed: bytes
    # When the token ends; None: never.
    expires_at: datetime | None = moment(default=None)
    # Until then one process renews the token, or rests after it could not.
    renewing_until: datetime | None = moment(default=None)
    # Why the token could not be renewed: a sentence for an admin.
    problem: str | None = None
    installed_at: datetime = moment(default_factory=utc_now)
