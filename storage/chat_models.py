"""Values of ``storage.chat``, as they cross the borders between packages: frozen, plain, without I/O.

A line of an admin's glossary, a received question, a quote of a web page, a turn of a thread, and notices:
events that channels or admins are notified of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from storage.models import Platform, Shown, TenantName


@dataclass(frozen=True, slots=True)
class GlossaryEntry:
    """One line of a glossary."""

    term: str
    """As people say it: ``PTO``."""
    words: tuple[str, ...]
    """As documents say it: ``paid time off``, ``vacation``."""
    is_mutual: bool = False
    """Term and words stand for one another; else the words for the term only."""


@dataclass(frozen=True, slots=True)
class InboxItem:
    """A received question as one worker holds it."""

    id: int
    fence: int
    """How often it was taken up. Its holder shows it at every step: one who lost it holds an older one."""
    attempts: int
    """Tries that ended by its own fault, or with their worker."""
    platform: Platform
    channel_id: int
    thread: str
    text: str
    address: dict[str, Any]
    received_at: datetime
    is_posting: bool
    """An earlier try began to post the placeholder and nobody knows whether it arrived."""
    message: dict[str, Any] | None
    """What names the placeholder, once it is known."""
    answer: dict[str, Any] | None
    """The answer, once it is known."""
    is_late: bool = False
    """Its asker asked too much: others are served first."""
    ahead: int = 0
    """Questions that wait and are served before it, where they were counted."""


@dataclass(frozen=True, slots=True)
class RecentQuestion:
    """A question that somebody asked not long ago."""

    tenant: TenantName
    """Of the channel whose documents were asked."""
    text: str


@dataclass(frozen=True, slots=True)
class WithdrawnItem:
    """A question whose author deleted it."""

    address: dict[str, Any]
    message: dict[str, Any] | None
    """What names its answer, or its placeholder; None while that is not known."""
    is_posting: bool
    """The placeholder may have been posted all the same."""
    others: Sequence[dict[str, Any]] = ()
    """What names the messages of the other questions of its thread."""


@dataclass(frozen=True, slots=True)
class PostedAnswer:
    """An answer in a chat of which a source may have changed, as one worker holds it."""

    inbox_id: int
    claimed_until: datetime
    """Until then nobody else takes it."""
    platform: Platform
    address: dict[str, Any]
    message: dict[str, Any] | None
    """What names it."""
    answer: dict[str, Any] | None
    """None: it was erased."""
    shown: Mapping[int, int]
    """What the message says: cited version -> the newer one, 0 of a withdrawn document."""
    removed_in: str | None = None
    """It was erased on purpose: the language in which its message is to say so."""


UPLOAD = "upload"
"""Key of an address: beside the question, or in its place, stands a file, as its platform names it."""
CHAT = "chat"
"""Key of a library's upload's address: the id of the direct chat that its receipt is posted in."""
STREAM = "is_stream"
"""Key of a message: it grows, and nothing in it names its question as long as it does."""
WORDS = {"asked", "asker", "user", UPLOAD}
"""What an address may hold of a question's words, those of a button, its file, and of whoever asked it."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A PDF that somebody uploaded in a chat."""

    id: int
    channel_id: int
    uploader: str
    """As FOOTNOTE_ADMINS names people."""
    name: str
    """Of the file in the channel's folder of uploads."""
    sha256: str
    size: int
    """In bytes."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewUpload:
    """A PDF that was fetched and is to be kept."""

    channel_id: int
    key: str
    """Of the message and the file in it: one that arrives again is the same."""
    uploader: str
    sha256: str
    size: int
    address: dict[str, Any]
    """Where its receipt is posted."""


# Strangers may install an app for many workspaces, make any number of channels there and fill each.
FULL_CHANNELS = 20


@dataclass(frozen=True, slots=True)
class UploadQuota:
    """The most that is uploaded in one channel; an installation gets that of ``FULL_CHANNELS``."""

    files: int
    size: int
    """In bytes."""

    @property
    def of_installation(self) -> UploadQuota:
        """The most of all channels of one workspace, organisation or tenant together."""
        return UploadQuota(self.files * FULL_CHANNELS, self.size * FULL_CHANNELS)


class UploadRefusal(StrEnum):
    """Why a PDF that was fetched is not kept."""

    KNOWN = "known"
    """A document of the channel has the same bytes."""
    TOO_MANY = "too many"
    TOO_LARGE = "too large"
    INSTALLATION_FULL = "installation full"


@dataclass(frozen=True, slots=True)
class Subscription:
    """A thread follows a page."""

    id: int
    shown: Shown
    """Of the version that the thread was told of last."""
    language: str
    channel_name: str
    """What its platform called the page's channel, in a direct chat that asks several; else ''."""


@dataclass(frozen=True, slots=True)
class SourceState:
    """What became of a version that was cited."""

    version_id: int
    document: UUID
    channel_id: int
    """The channel of the document: a direct chat cites those of a library."""
    is_withdrawn: bool
    newer: int | None
    """The version that answers in its place, with another content."""
    since: datetime | None
    """When that came into use."""

    @property
    def change(self) -> int | None:
        """The newer version, 0 where the document was withdrawn; None where it still answers."""
        return 0 if self.is_withdrawn else self.newer


@dataclass(frozen=True, slots=True)
class ShownWeb:
    """A quote of an approved web page that an answer shows."""

    url: str
    sha256: str
    """Of the text it came from."""
    quote: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A question of a thread with its answer, as the questions after it may lean on them."""

    question: str
    standalone: str
    """What was searched for: the question itself, unless it leaned on the turns before it."""
    answer: str
    documents: frozenset[UUID] = frozenset()
    """Those that the answer cited."""


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn that is to be remembered."""

    key: str
    """Id of its question, which is remembered once, however often it is answered."""
    channel_id: int
    thread: str
    """Within its channel; '' is the channel's running conversation."""
    question: str
    standalone: str
    answer: str
    versions: tuple[int, ...]
    """Versions that the answer cited."""
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class Outage:
    """A part of the service that does not work, or did not."""

    part: str
    """As /readyz names it."""
    reason: str
    """A sentence for an admin, as /readyz gives it."""
    since: datetime
    until: datetime | None = None
    """None while it lasts."""


@dataclass(frozen=True, slots=True)
class Notice:
    """An event that people are notified of, with what it is about; what does not apply is empty."""

    id: int
    kind: str
    """live, failed, folder, source failed, source changed, outage, welcome or digest."""
    created_at: datetime
    channel_id: int
    channel: str
    """What people call the channel."""
    text: str | None
    """Why a file cannot be read, or what is wrong with a folder; None when the folder is well again.

    Of a web page why it cannot be fetched, or a quote that stands on it no more.
    """
    file: str = ""
    title: str = ""
    version_id: int | None = None
    number: int = 0
    """Of the version; above 1 it replaced another one."""
    has_live: bool = False
    """An earlier version of a failed file goes on answering."""
    reading_id: UUID | None = None
    pages: int = 0
    chunks: int = 0
    unread_pages: tuple[int, ...] = ()
    pages_without_text: tuple[int, ...] = ()
    ocr_pages: tuple[int, ...] = ()
    """Pages without usable text that OCR has read, or is to read."""
    is_repaired: bool = False
    location: str = ""
    """Of the folder."""
    url: str = ""
    """Of the web page."""
    questions: tuple[str, ...] | None = None
    """Questions that were tried and that the version answers; None when none were tried yet."""
    outage: Outage | None = None


class NoticeAudience(StrEnum):
    """Who is told of an event."""

    CHANNEL = "channel"
    """Of documents: the channel that has them."""
    ADMINS = "admins"
    """Of folders, web pages and outages."""
    NEWCOMERS = "newcomers"
    """The channel that we joined."""
    OWNERS = "owners"
    """Whoever looks after the documents of a channel."""


@dataclass(frozen=True, slots=True)
class NoticeGroup:
    """What waits to be announced of one channel, for one audience."""

    channel_id: int
    audience: NoticeAudience
    count: int
    oldest: datetime
    newest: datetime
    upload: int | None = None
    """All of it is about this upload."""


@dataclass(frozen=True, slots=True)
class NoticeBatch:
    """Notices that one message announces."""

    id: str
    told_in: int
    """The channel it is announced in."""
    began_at: datetime
    """When its oldest notice was made: nothing of the message is older."""
    upload: int | None = None
    """As of the group that it was made of."""
