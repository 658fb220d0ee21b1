"""The values that cross the borders between packages: frozen, plain, without I/O.

Pages are physical and count from 1. Boxes are fractions (0-1) of the displayed page, origin at its top left,
after crop and rotation.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from storage.errors import InvalidTenant

_TENANT = re.compile(r"sl_[A-Z0-9]{2,24}_[A-Z0-9]{2,24}|(?:ms|lo)_[a-z2-7]{52}")

# Under which a reading's details hold it.
KEY = "metadata"

FIELDS = (
    "sop_id", "version", "department", "effective", "last_updated", "title", "author", "organisation",
    "document_type", "language",
)  # fmt: skip

_PHRASES = {
    "sop_id": "{}",
    "version": "version {}",
    "department": "{}",
    "effective": "effective {}",
    "last_updated": "updated {}",
}


# Begins the name of a library's own channel: no folder, and so no other local channel, has a slash in it.
LIBRARY = "library/"


class TenantName(str):
    """A channel's shard in the index; only a well-formed name can become one.

    Raises:
        InvalidTenant: the text is not a tenant name.
    """

    __slots__ = ()

    def __new__(cls, name: str) -> TenantName:
        if not _TENANT.fullmatch(name):
            raise InvalidTenant(f"{name!r} is not a tenant name")
        return super().__new__(cls, name)

    @property
    def workspace(self) -> str:
        """The Slack installation that it names; '' of a tenant of Teams or a local one."""
        return self.split("_")[1] if self.startswith("sl_") else ""


class Platform(StrEnum):
    """Where a channel lives."""

    SLACK = "slack"
    TEAMS = "teams"
    LOCAL = "local"


class ChannelKey(NamedTuple):
    """One conversation scope, taken only from a verified envelope."""

    platform: Platform
    # Slack: the enterprise id of an org-wide install, else the team id. Teams: the AAD tenant.
    installation: str
    # Slack: the channel id. Teams: the conversation id without ``;messageid=``. Local: the name.
    conversation: str

    @property
    def tenant(self) -> TenantName:
        """The tenant of this channel.

        Raises:
            InvalidTenant: a Slack id holds a character that Slack ids never hold.
        """
        if self.platform is Platform.SLACK:
            return TenantName(f"sl_{self.installation}_{self.conversation}")
        if self.platform is Platform.TEAMS:
            conversation = self.conversation.split(";", 1)[0]
            return TenantName("ms_" + _digest(self.installation.lower(), conversation))
        return TenantName("lo_" + _digest(self.conversation))


def _digest(*parts: str) -> str:
    """Lower-case base32 of BLAKE2b-256 over length-prefixed parts: no two keys share one."""
    hasher = hashlib.blake2b(digest_size=32)
    for part in parts:
        data = part.encode()
        hasher.update(len(data).to_bytes(4, "big") + data)
    return base64.b32encode(hasher.digest()).decode().rstrip("=").lower()


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel as SQL knows it."""

    id: int
    tenant: TenantName
    platform: Platform
    # What people call it; for a chat channel nobody named, its tenant name.
    name: str
    # Raising it ends every link of the channel.
    epoch: int
    # It is a chat between one person and the bot.
    is_direct: bool = False
    # The workspace of Slack or tenant of Teams that it is in; empty: of a local one.
    installation: str = ""

    @property
    def is_library(self) -> bool:
        """True if it is a library's own channel, which holds what direct chats ask."""
        return self.platform is Platform.LOCAL and self.name.startswith(LIBRARY)


class Box(NamedTuple):
    """A rectangle as fractions (0-1) of the displayed page, origin top left."""

    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True, slots=True)
class PageImage:
    """A page, or a part of one, as a picture."""

    data: bytes
    # image/png or image/jpeg.
    media_type: str


class Rung(StrEnum):
    """How far a reading climbed."""

    # Text, boxes and font-size headings; found by words.
    QUICK = "quick"
    # By the layout of the pages, with tables, figures, OCR where text is missing, and vectors.
    FULL = "full"


class PlacedWord(NamedTuple):
    """Where one word of a text stands on paper: text[start:end] lies in ``box`` on ``page``."""

    start: int
    end: int
    page: int
    # Number of the line within its page: boxes of one line are shown as one rectangle.
    line: int
    box: Box


@dataclass(frozen=True, slots=True)
class Page:
    """One page as read: its text, and where every word of it stands."""

    number: int
    # The printed page number, or '' when the file states none.
    label: str
    width: float
    # Displayed size in points.
    height: float
    text: str
    words: Sequence[PlacedWord]


# (offset, headings) wherever a section begins in a text, in order.
Sections = tuple[tuple[int, tuple[str, ...]], ...]


def section_at(sections: Sections, offset: int) -> tuple[str, ...]:
    """Return the headings above an offset of a text; the first section begins at 0."""
    return next(path for start, path in reversed(sections) if start <= offset)


@dataclass(frozen=True, slots=True)
class Chunk:
    """What is embedded and stored."""

    ordinal: int
    text: str
    # cl100k_base tokens of ``text``.
    tokens: int
    # The headings above its first text, by which it is found.
    heading_path: tuple[str, ...]
    # The offset -> box map of ``text``.
    words: Sequence[PlacedWord]
    # (offset, page) wherever a page begins in ``text``; the first offset is 0.
    page_starts: tuple[tuple[int, int], ...]
    # (offset, headings) of each section of ``text``; without any, ``heading_path`` is above all of it.
    sections: Sections = ()

    def __post_init__(self) -> None:
        if not self.sections:
            object.__setattr__(self, "sections", ((0, self.heading_path),))

    def section_at(self, offset: int) -> tuple[str, ...]:
        """Return the headings above an offset of ``text``."""
        return section_at(self.sections, offset)

    def page_at(self, offset: int) -> int:
        """Return the page that an offset of ``text`` is on."""
        return next(page for start, page in reversed(self.page_starts) if start <= offset)

    @property
    def first_page(self) -> int:
        return self.page_starts[0][1]

    @property
    def last_page(self) -> int:
        return self.page_starts[-1][1]


@dataclass(frozen=True, slots=True)
class Reading:
    """What one generation of parser, chunker and embedder made of one content."""

    id: UUID
    sha256: str
    generation: str
    rung: Rung
    title: str
    pages: int
    chunks: int
    figures: int = 0
    # What else was found out about the file.
    details: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class WebOrigin:
    """Where a text comes from that is no PDF: an approved web page, whose address is its ``file``."""

    host: str
    # When its server last said that this is its text.
    fetched_at: datetime | None
    # Of each chunk: by which a link reaches its heading; '' where none does.
    anchors: tuple[str, ...] = ()
    # The address is a PDF's, which has pages.
    is_pdf: bool = False


@dataclass(frozen=True, slots=True)
class LivePublication:
    """One reading of one version that answers in one channel right now."""

    id: UUID
    channel_id: int
    document_id: UUID
    version_id: int
    reading_id: UUID
    sha256: str
    rung: Rung
    # Path inside the watched folder, with ``/``.
    file: str
    title: str
    pages: int
    chunks: int
    # Where its vectors lie; None when it has none.
    space: str | None = None
    # The index has them behind the chunks.
    figures: int = 0
    # What its document says of itself, by field.
    metadata: Mapping[str, MetadataField] = field(default_factory=dict, compare=False)
    # Pages whose text OCR read from their picture.
    ocr_pages: frozenset[int] = frozenset()
    # When its version was found in its folder.
    arrived_at: datetime | None = None
    # Set for an approved web page: one page, no version, no reading, no boxes.
    web: WebOrigin | None = field(default=None, compare=False)

    @property
    def file_name(self) -> str:
        """Last part of ``file``, which tells documents of one title apart; of a web page its address."""
        return self.file if self.web else self.file.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Shown:
    """A place of a version that an answer shows."""

    version_id: int
    page: int
    quote: str = ""
    # Rectangles of its words, as shares of the displayed page.
    boxes: Collection[Sequence[float]] = ()
    # Its [n] in an answer; None: it is no quote of one.
    number: int | None = None
    # Id of the citation that it was cited by before; None: it was not.
    origin: int | None = None


@dataclass(frozen=True, slots=True)
class CitationRecord:
    """A citation as kept, so that a link outlives the readings and chunks it came from."""

    id: int
    channel_id: int
    version_id: int
    page: int
    quote: str
    # The boxes of the quote on ``page``; empty when nothing could be located.
    boxes: tuple[Box, ...]
    created_at: datetime
    # The same of all quotes of one answer; None: it is no quote of one, or older than such ids.
    answer_id: int | None = None
    # Its [n] in that answer.
    number: int | None = None
    # The citation of another version that it was made from; None: it was made for an answer.
    origin_id: int | None = None
    # Since when its links open nothing; None: they do.
    revoked_at: datetime | None = None

    @property
    def shown(self) -> Shown:
        """What it shows."""
        return Shown(self.version_id, self.page, self.quote, self.boxes, self.number, self.id)


@dataclass(frozen=True, slots=True)
class DocumentStatus:
    """One document as ``footnote documents`` shows it."""

    channel: str
    document: UUID
    # sha256 of the version that answers, else of the newest one.
    version: str
    file: str
    title: str
    pages: int
    # live, waiting, reading, quarantined or deleted.
    state: str
    # None while nothing of it is live.
    rung: Rung | None
    reason: str | None
    # What the version that answers says of itself, by field.
    metadata: Mapping[str, MetadataField] = field(default_factory=dict)
    # Of the version that answers; above 1 it replaced another one.
    number: int = 0
    # When that version was found in its folder; None while nothing of the document is live.
    arrived_at: datetime | None = None
    # Its newest file could not be read or its copy is lost, whether a version answers meanwhile or not.
    can_retry: bool = False


@dataclass(frozen=True, slots=True)
class VersionSource:
    """What a link needs to know about the version it opens."""

    version_id: int
    channel_id: int
    document_id: UUID
    sha256: str
    file: str
    title: str
    pages: int
    # Newest done reading of this content; None when it was never read.
    reading_id: UUID | None
    number: int
    # Number of the document's newest live version.
    newest_number: int
    is_deleted: bool
    # What the version says of itself, by field.
    metadata: Mapping[str, MetadataField] = field(default_factory=dict, compare=False)
    # Pages whose text OCR read from their picture.
    ocr_pages: frozenset[int] = frozenset()


class FigureKind(StrEnum):
    """What a figure is; ``unknown`` rather than a guess."""

    BAR = "bar"
    LINE = "line"
    PIE = "pie"
    # A flow chart, map, photograph or diagram: surely none of the three.
    OTHER = "other"
    UNKNOWN = "unknown"
    # Of a reading no figure is one: an answer shows the table that it quotes as a picture.
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture or chart of one page; decoration is none."""

    page: int
    box: Box
    kind: FigureKind
    # It shows numbers, not only things.
    holds_data: bool
    # Ordinal of the chunk it stands in; None on a page without text.
    chunk: int | None
    heading_path: tuple[str, ...]
    # The document's own words for it, '' when it gives none.
    caption: str
    # Sentences of its chunk that name it, or that stand around it.
    context: str
    # What is printed in it, or what OCR reads there; never to be quoted.
    text: str
    # What a vision model says of it, '' where none was asked; never to be quoted.
    description: str = ""

    @property
    def said(self) -> str:
        """All that is known of it in words, what is missing left out: this is embedded."""
        return "\n".join(filter(None, (self.caption, self.description, self.context, self.text)))


@dataclass(frozen=True, slots=True)
class MetadataField:
    """One value of a document's metadata and where it is printed."""

    name: str
    # As printed, or as an admin says.
    value: str
    # Counted from 1; None: it is an admin's word.
    page: int | None
    boxes: tuple[Box, ...]
    # Of a date that can be read in one way, as in 2024-03-01.
    day: str | None = None


def self_description(metadata: Mapping[str, MetadataField]) -> str:
    """Return a document's metadata in one line: ``SOP-IT-04, version 2.1, IT, effective 2024-01-15``."""
    shown = {name: one.day or one.value for name, one in metadata.items()}
    return ", ".join(phrase.format(shown[name]) for name, phrase in _PHRASES.items() if name in shown)


def kept_of(fields: Iterable[MetadataField]) -> dict[str, Any]:
    """As they are kept under ``KEY``."""
    return {one.name: [one.value, one.page, [list(box) for box in one.boxes], one.day] for one in fields}


def metadata_of(details: Mapping[str, Any], corrected: Mapping[str, str]) -> dict[str, MetadataField]:
    """Return the fields by name: what a reading's details hold, and over it an admin's words."""
    printed = {
        name: MetadataField(name, value, page, tuple(Box(*box) for box in boxes), day)
        for name, (value, page, boxes, day) in details.get(KEY, {}).items()
    }
    said = {name: MetadataField(name, value, None, ()) for name, value in corrected.items()}
    return {name: one for name, one in (printed | said).items() if one.value}


def says(metadata: Mapping[str, MetadataField], wanted: Mapping[str, str]) -> bool:
    """True if a document says all of this of itself: each value as printed, in any case, or as a day."""
    return all(name in metadata and _is_value(metadata[name], value) for name, value in wanted.items())


def _is_value(one: MetadataField, value: str) -> bool:
    wanted = " ".join(value.split()).casefold()
    return wanted in (" ".join(one.value.split()).casefold(), one.day)
