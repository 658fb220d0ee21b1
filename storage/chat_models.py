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

    # As people say it: ``PTO``.
    term: str
    # As documents say it: ``paid time off``, ``vacation``.
    words: tuple[str, ...]
    # Term and words stand for one another; else the words for the term only.
    is_mutual: bool = False


@dataclass(frozen=True, slots=True)
class InboxItem:
    """A received question as one worker holds it."""

    id: int
    # How often it was taken up. Its holder shows it at every step: one who lost it holds an older one.
    fence: int
    # Tries that ended by its own fault, or with their worker.
    attempts: int
    platform: Platform
    channel_id: int
    thread: str
    text: str
    address: dict[str, Any]
    received_at: datetime
    # An earlier try began to post the placeholder and nobody knows whether it arrived.
    is_posting: bool
    # What names the placeholder, once it is known.
    message: dict[str, Any] | None
    # The answer, once it is known.
    answer: dict[str, Any] | None
    # Its asker asked too much: others are served first.
    is_late: bool = False
    # Questions that wait and are served before it, where they were counted.
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class RecentQuestion:
    """A question that somebody asked not long ago."""

    # Of the channel whose documents were asked.
    tenant: TenantName
    text: str


@dataclass(frozen=True, slots=True)
class WithdrawnItem:
    """A question whose author deleted it."""

    address: dict[str, Any]
    # What names its answer, or its placeholder; None while that is not known.
    message: dict[str, Any] | None
    # The placeholder may have been posted all the same.
    is_posting: bool
    # What names the messages of the other questions of its thread.
    others: Sequence[dict[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class PostedAnswer:
    """An answer in a chat of which a source may have changed, as one worker holds it."""

    inbox_id: int
    # Until then nobody else takes it.
    claimed_until: datetime
    platform: Platform
    address: dict[str, Any]
    # What names it.
    message: dict[str, Any] | None
    # None: it was erased.
    answer: dict[str, Any] | None
    # What the message says: cited version -> the newer one, 0 of a withdrawn document.
    shown: Mapping[int, int]
    # It was erased on purpose: the language in which its message is to say so.
    removed_in: str | None = None


# Key of an address: beside the question, or in its place, stands a file, as its platform names it.
UPLOAD = "upload"
# Key of a library's upload's address: the id of the direct chat that its receipt is posted in.
CHAT = "chat"
# Key of a message: it grows, and nothing in it names its question as long as it does.
STREAM = "is_stream"
# What an address may hold of a question's words, those of a button, its file, and of whoever asked it.
WORDS = {"asked", "asker", "user", UPLOAD}


@dataclass(frozen=True, slots=True)
class Upload:
    """A PDF that somebody uploaded in a chat."""

    id: int
    channel_id: int
    # As FOOTNOTE_ADMINS names people.
    uploader: str
    # Of the file in the channel's folder of uploads.
    name: str
    sha256: str
    # In bytes.
    size: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewUpload:
    """A PDF that was fetched and is to be kept."""

    channel_id: int
    # Of the message and the file in it: one that arrives again is the same.
    key: str
    uploader: str
    sha256: str
    size: int
    # Where its receipt is posted.
    address: dict[str, Any]


# Strangers may install an app for many workspaces, make any number of channels there and fill each.
FULL_CHANNELS = 20


@dataclass(frozen=True, slots=True)
class UploadQuota:
    """The most that is uploaded in one channel; an installation gets that of ``FULL_CHANNELS``."""

    files: int
    # In bytes.
    size: int

    @property
    def of_installation(self) -> UploadQuota:
        """The most of all channels of one workspace, organisation or tenant together."""
        return UploadQuota(self.files * FULL_CHANNELS, self.size * FULL_CHANNELS)


class UploadRefusal(StrEnum):
    """Why a PDF that was fetched is not kept."""

    # A document of the channel has the same bytes.
    KNOWN = "known"
    TOO_MANY = "too many"
    TOO_LARGE = "too large"
    INSTALLATION_FULL = "installation full"


@dataclass(frozen=True, slots=True)
class Subscription:
    """A thread follows a page."""

    id: int
    # Of the version that the thread was told of last.
    shown: Shown
    language: str
    # What its platform called the page's channel, in a direct chat that asks several; else ''.
    channel_name: str


@dataclass(frozen=True, slots=True)
class SourceState:
    """What became of a version that was cited."""

    version_id: int
    document: UUID
    # The channel of the document: a direct chat cites those of a library.
    channel_id: int
    is_withdrawn: bool
    # The version that answers in its place, with another content.
    newer: int | None
    # When that came into use.
    since: datetime | None

    @property
    def change(self) -> int | None:
        """The newer version, 0 where the document was withdrawn; None where it still answers."""
        return 0 if self.is_withdrawn else self.newer


@dataclass(frozen=True, slots=True)
class ShownWeb:
    """A quote of an approved web page that an answer shows."""

    url: str
    # Of the text it came from.
    sha256: str
    quote: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A question of a thread with its answer, as the questions after it may lean on them."""

    question: str
    # What was searched for: the question itself, unless it leaned on the turns before it.
    standalone: str
    answer: str
    # Those that the answer cited.
    documents: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn that is to be remembered."""

    # Id of its question, which is remembered once, however often it is answered.
    key: str
    channel_id: int
    # Within its channel; '' is the channel's running conversation.
    thread: str
    question: str
    standalone: str
    answer: str
    # Versions that the answer cited.
    versions: tuple[int, ...]
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class Outage:
    """A part of the service that does not work, or did not."""

    # As /readyz names it.
    part: str
    # A sentence for an admin, as /readyz gives it.
    reason: str
    since: datetime
    # None while it lasts.
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """An event that people are notified of, with what it is about; what does not apply is empty."""

    id: int
    # live, failed, folder, source failed, source changed, outage, welcome or digest.
    kind: str
    created_at: datetime
    channel_id: int
    # What people call the channel.
    channel: str
    # Why a file cannot be read, or what is wrong with a folder; None when the folder is well again.
    #
    # Of a web page why it cannot be fetched, or a quote that stands on it no more.
    text: str | None
    file: str = ""
    title: str = ""
    version_id: int | None = None
    # Of the version; above 1 it replaced another one.
    number: int = 0
    # An earlier version of a failed file goes on answering.
    has_live: bool = False
    reading_id: UUID | None = None
    pages: int = 0
    chunks: int = 0
    unread_pages: tuple[int, ...] = ()
    pages_without_text: tuple[int, ...] = ()
    # Pages without usable text that OCR has read, or is to read.
    ocr_pages: tuple[int, ...] = ()
    is_repaired: bool = False
    # Of the folder.
    location: str = ""
    # Of the web page.
    url: str = ""
    # Questions that were tried and that the version answers; None when none were tried yet.
    questions: tuple[str, ...] | None = None
    outage: Outage | None = None


class NoticeAudience(StrEnum):
    """Who is told of an event."""

    # Of documents: the channel that has them.
    CHANNEL = "channel"
    # Of folders, web pages and outages.
    ADMINS = "admins"
    # The channel that we joined.
    NEWCOMERS = "newcomers"
    # Whoever looks after the documents of a channel.
    OWNERS = "owners"


@dataclass(frozen=True, slots=True)
class NoticeGroup:
    """What waits to be announced of one channel, for one audience."""

    channel_id: int
    audience: NoticeAudience
    count: int
    oldest: datetime
    newest: datetime
    # All of it is about this upload.
    upload: int | None = None


@dataclass(frozen=True, slots=True)
class NoticeBatch:
    """Notices that one message announces."""

    id: str
    # The channel it is announced in.
    told_in: int
    # When its oldest notice was made: nothing of the message is older.
    began_at: datetime
    # As of the group that it was made of.
    upload: int | None = None
