"""Value types of ``storage.chat`` that cross package borders: frozen, plain, without I/O.

Glossary entries, inbox items, posted answers, uploads, thread turns, and notices: events that channels or
admins are notified of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from storage.models import CitedPlace, Platform, TenantName


@dataclass(frozen=True, slots=True)
class GlossaryEntry:
    """A line of an admin's glossary."""

    # The word people use: ``PTO``.
    term: str
    # Synonyms in the documents: ``paid time off``, ``vacation``.
    words: tuple[str, ...]
    # Expands in both directions; otherwise only from ``term`` to ``words``.
    is_mutual: bool = False


@dataclass(frozen=True, slots=True)
class InboxItem:
    """A question claimed by one worker."""

    id: int
    # Fencing token: every claim raises it and every later step compares it, so a stale worker changes
    # nothing.
    fence: int
    # Failed attempts: the question's own faults and crashed workers.
    attempts: int
    platform: Platform
    channel_id: int
    thread: str
    text: str
    address: dict[str, Any]
    received_at: datetime
    # An earlier attempt began to post the placeholder; it may or may not have arrived.
    is_posting: bool
    # Platform id of the placeholder, once known.
    message: dict[str, Any] | None
    # The answer as JSON, once known.
    answer: dict[str, Any] | None
    # Low priority: the asker sent too many questions, so others are served first.
    is_late: bool = False
    # Questions served before this one, where they were counted.
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class RecentQuestion:
    """A recently asked question."""

    # Tenant whose documents were searched.
    tenant: TenantName
    text: str
    # Reply address, and message of the answer.
    address: Mapping[str, Any] = field(default_factory=dict)
    message: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WithdrawnItem:
    """A question whose author deleted it."""

    address: dict[str, Any]
    # Platform id of the answer or placeholder; None if unknown.
    message: dict[str, Any] | None
    # The placeholder may have been posted without our knowing its id.
    is_posting: bool
    # Platform ids of the messages of the thread's other questions.
    others: Sequence[dict[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class PostedAnswer:
    """A posted answer with a possibly outdated source, claimed by one worker."""

    inbox_id: int
    # End of the lease.
    claimed_until: datetime
    platform: Platform
    address: dict[str, Any]
    # Platform id of the message.
    message: dict[str, Any] | None
    # None once erased.
    answer: dict[str, Any] | None
    # Changes that the message already shows: cited version -> newer version, 0 for a withdrawn document.
    shown: Mapping[int, int]
    # Language of the removal notice, if the answer was erased on purpose.
    removed_in: str | None = None


# Address key: the file sent with the question or instead of one, in the platform's own terms.
UPLOAD_KEY = "upload"
# Address key of an upload to a library: id of the direct chat that gets the receipt.
CHAT_KEY = "chat"
# Message key: the message is being streamed and does not name its question until complete.
STREAM_KEY = "is_stream"
# Address keys that hold personal data: a question's or button's text, its file, and the asker.
PERSONAL_KEYS = {"asked", "asker", "user", UPLOAD_KEY}


@dataclass(frozen=True, slots=True)
class Upload:
    """A PDF that was uploaded in a chat."""

    id: int
    channel_id: int
    # In the form used in FOOTNOTE_ADMINS.
    uploader: str
    # File name in the channel's upload folder.
    name: str
    sha256: str
    # Bytes.
    size: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewUpload:
    """A downloaded PDF that is about to be stored."""

    channel_id: int
    # Idempotency key, from the message and the file in it.
    key: str
    uploader: str
    sha256: str
    size: int
    # Address that gets the receipt.
    address: dict[str, Any]


# Caps an installation: anybody may install the app, create any number of channels and fill each.
CHANNELS_PER_INSTALLATION_QUOTA = 20


@dataclass(frozen=True, slots=True)
class UploadQuota:
    """Upload limits of one channel; times CHANNELS_PER_INSTALLATION_QUOTA per installation."""

    files: int
    # Bytes.
    size: int

    @property
    def per_installation(self) -> UploadQuota:
        """Limits of all channels of one Slack workspace, organisation or Teams tenant together."""
        return UploadQuota(
            self.files * CHANNELS_PER_INSTALLATION_QUOTA, self.size * CHANNELS_PER_INSTALLATION_QUOTA
        )


class UploadRefusal(StrEnum):
    """Reason why a downloaded PDF was not stored."""

    # The channel already has a document with these bytes.
    KNOWN = "known"
    TOO_MANY = "too many"
    TOO_LARGE = "too large"
    INSTALLATION_FULL = "installation full"


@dataclass(frozen=True, slots=True)
class Subscription:
    """A thread's subscription to changes of a page."""

    id: int
    # The place in the version that the thread was last notified of.
    shown: CitedPlace
    language: str
    # Platform's name of the page's channel, in a direct chat that searches several; else ''.
    channel_name: str


@dataclass(frozen=True, slots=True)
class SourceState:
    """State of a cited version."""

    version_id: int
    document: UUID
    # The document's channel: a direct chat cites documents of a library.
    channel_id: int
    is_withdrawn: bool
    # The live version that replaced it with different content.
    newer: int | None
    # Publication time of ``newer``.
    since: datetime | None

    @property
    def change(self) -> int | None:
        """The newer version, 0 if the document was withdrawn, None if unchanged."""
        return 0 if self.is_withdrawn else self.newer


@dataclass(frozen=True, slots=True)
class Turn:
    """A question of a thread with its answer: context for follow-up questions."""

    question: str
    # The search query: the question itself, or its rewrite if it depends on earlier turns.
    standalone: str
    answer: str
    # Documents that the answer cites.
    documents: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn that is about to be stored."""

    # Idempotency key: id of the question, stored once however often it is answered.
    key: str
    channel_id: int
    # Unique within its channel; '' is the channel's running conversation.
    thread: str
    question: str
    standalone: str
    answer: str
    # Versions that the answer cites.
    versions: tuple[int, ...]
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class Outage:
    """A current or past outage of one component."""

    # Component name, as in /readyz.
    part: str
    # One sentence for an admin, as in /readyz.
    reason: str
    since: datetime
    # None while it lasts.
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """An event that people are notified of; fields that do not apply are empty."""

    id: int
    # live, failed, folder, source failed, source changed, outage, welcome or digest.
    kind: str
    created_at: datetime
    channel_id: int
    # Display name of the channel.
    channel: str
    # The error of an unreadable file, folder or web page, or a quote that disappeared from a web page. None
    # when the folder works again.
    text: str | None
    file: str = ""
    title: str = ""
    version_id: int | None = None
    # Version number; above 1 it replaced an earlier version.
    number: int = 0
    # An earlier version of the failed file is still live.
    has_live: bool = False
    reading_id: UUID | None = None
    pages: int = 0
    chunks: int = 0
    unread_pages: tuple[int, ...] = ()
    pages_without_text: tuple[int, ...] = ()
    # Pages without usable text that OCR has read or will read.
    ocr_pages: tuple[int, ...] = ()
    is_repaired: bool = False
    # Location of the folder.
    location: str = ""
    # Address of the web page.
    url: str = ""
    # Trial questions that the version answers; None if none were tried yet.
    questions: tuple[str, ...] | None = None
    outage: Outage | None = None


class NoticeAudience(StrEnum):
    """Recipients of an event."""

    # Document events: the document's channel.
    CHANNEL = "channel"
    # Folder, web page and outage events.
    ADMINS = "admins"
    # Welcome: the channel that the bot just joined.
    NEWCOMERS = "newcomers"
    # Digest: the people responsible for a channel's documents.
    OWNERS = "owners"


@dataclass(frozen=True, slots=True)
class NoticeGroup:
    """Pending notices of one channel for one audience."""

    channel_id: int
    audience: NoticeAudience
    count: int
    oldest: datetime
    newest: datetime
    # Set if all of them are about this upload.
    upload: int | None = None
    # Files of the channel are being read: what is told of them belongs to the same receipt.
    has_unread_files: bool = False


@dataclass(frozen=True, slots=True)
class NoticeBatch:
    """Notices that are announced in one message."""

    id: str
    # Channel that gets the message.
    told_in: int
    # Creation time of the oldest notice; the message is not older.
    began_at: datetime
    # The group's ``upload``.
    upload: int | None = None
