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

KEY = "metadata"
"""Under which a reading's details hold it."""

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


LIBRARY = "library/"
"""Begins the name of a library's own channel: no folder, and so no other local channel, has a slash in it."""


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
    installation: str
    """Slack: the enterprise id of an org-wide install, else the team id. Teams: the AAD tenant."""
    conversation: str
    """Slack: the channel id. Teams: the conversation id without ``;messageid=``. Local: the name."""

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
    name: str
    """What people call it; for a chat channel nobody named, its tenant name."""
    epoch: int
    """Raising it ends every link of the channel."""
    is_direct: bool = False
    """It is a chat between one person and the bot."""
    installation: str = ""
    """The workspace of Slack or tenant of Teams that it is in; empty: of a local one."""

    @property
    def is_library(self) -> bool:
        """Whether it is a library's own channel, which holds what direct chats ask."""
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
    media_type: str
    """image/png or image/jpeg."""


class Rung(StrEnum):
    """How far a reading climbed."""

    QUICK = "quick"
    """Text, boxes and font-size headings; found by words."""
    FULL = "full"
    """By the layout of the pages, with tables, figures, OCR where text is missing, and vectors."""


class PlacedWord(NamedTuple):
    """Where one word of a text stands on paper: text[start:end] lies in ``box`` on ``page``."""

    start: int
    end: int
    page: int
    line: int
    """Number of the line within its page: boxes of one line are shown as one rectangle."""
    box: Box


@dataclass(frozen=True, slots=True)
class Page:
    """One page as read: its text, and where every word of it stands."""

    number: int
    label: str
    """The printed page number, or '' when the file states none."""
    width: float
    height: float
    """Displayed size in points."""
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
    tokens: int
    """cl100k_base tokens of ``text``."""
    heading_path: tuple[str, ...]
    """The headings above its first text, by which it is found."""
    words: Sequence[PlacedWord]
    """The offset -> box map of ``text``."""
    page_starts: tuple[tuple[int, int], ...]
    """(offset, page) wherever a page begins in ``text``; the first offset is 0."""
    sections: Sections = ()
    """(offset, headings) of each section of ``text``; without any, ``heading_path`` is above all of it."""

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
    details: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What else was found out about the file."""


@dataclass(frozen=True, slots=True)
class WebOrigin:
    """Where a text comes from that is no PDF: an approved web page, whose address is its ``file``."""

    host: str
    fetched_at: datetime | None
    """When its server last said that this is its text."""
    anchors: tuple[str, ...] = ()
    """Of each chunk: by which a link reaches its heading; '' where none does."""
    is_pdf: bool = False
    """The address is a PDF's, which has pages."""


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
    file: str
    """Path inside the watched folder, with ``/``."""
    title: str
    pages: int
    chunks: int
    space: str | None = None
    """Where its vectors lie; None when it has none."""
    figures: int = 0
    """The index has them behind the chunks."""
    metadata: Mapping[str, MetadataField] = field(default_factory=dict, compare=False)
    """What its document says of itself, by field."""
    ocr_pages: frozenset[int] = frozenset()
    """Pages whose text OCR read from their picture."""
    arrived_at: datetime | None = None
    """When its version was found in its folder."""
    web: WebOrigin | None = field(default=None, compare=False)
    """Set for an approved web page: one page, no version, no reading, no boxes."""

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
    boxes: Collection[Sequence[float]] = ()
    """Rectangles of its words, as shares of the displayed page."""
    number: int | None = None
    """Its [n] in an answer; None: it is no quote of one."""
    origin: int | None = None
    """Id of the citation that it was cited by before; None: it was not."""


@dataclass(frozen=True, slots=True)
class CitationRecord:
    """A citation as kept, so that a link outlives the readings and chunks it came from."""

    id: int
    channel_id: int
    version_id: int
    page: int
    quote: str
    boxes: tuple[Box, ...]
    """The boxes of the quote on ``page``; empty when nothing could be located."""
    created_at: datetime
    answer_id: int | None = None
    """The same of all quotes of one answer; None: it is no quote of one, or older than such ids."""
    number: int | None = None
    """Its [n] in that answer."""
    origin_id: int | None = None
    """The citation of another version that it was made from; None: it was made for an answer."""
    revoked_at: datetime | None = None
    """Since when its links open nothing; None: they do."""

    @property
    def shown(self) -> Shown:
        """What it shows."""
        return Shown(self.version_id, self.page, self.quote, self.boxes, self.number, self.id)


@dataclass(frozen=True, slots=True)
class DocumentStatus:
    """One document as ``footnote documents`` shows it."""

    channel: str
    document: UUID
    version: str
    """sha256 of the version that answers, else of the newest one."""
    file: str
    title: str
    pages: int
    state: str
    """live, waiting, reading, quarantined or deleted."""
    rung: Rung | None
    """None while nothing of it is live."""
    reason: str | None
    metadata: Mapping[str, MetadataField] = field(default_factory=dict)
    """What the version that answers says of itself, by field."""
    number: int = 0
    """Of the version that answers; above 1 it replaced another one."""
    arrived_at: datetime | None = None
    """When that version was found in its folder; None while nothing of the document is live."""
    can_retry: bool = False
    """Its newest file could not be read or its copy is lost, whether a version answers meanwhile or not."""


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
    reading_id: UUID | None
    """Newest done reading of this content; None when it was never read."""
    number: int
    newest_number: int
    """Number of the document's newest live version."""
    is_deleted: bool
    metadata: Mapping[str, MetadataField] = field(default_factory=dict, compare=False)
    """What the version says of itself, by field."""
    ocr_pages: frozenset[int] = frozenset()
    """Pages whose text OCR read from their picture."""


class FigureKind(StrEnum):
    """What a figure is; ``unknown`` rather than a guess."""

    BAR = "bar"
    LINE = "line"
    PIE = "pie"
    OTHER = "other"
    """A flow chart, map, photograph or diagram: surely none of the three."""
    UNKNOWN = "unknown"
    TABLE = "table"
    """Of a reading no figure is one: an answer shows the table that it quotes as a picture."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture or chart of one page; decoration is none."""

    page: int
    box: Box
    kind: FigureKind
    holds_data: bool
    """It shows numbers, not only things."""
    chunk: int | None
    """Ordinal of the chunk it stands in; None on a page without text."""
    heading_path: tuple[str, ...]
    caption: str
    """The document's own words for it, '' when it gives none."""
    context: str
    """Sentences of its chunk that name it, or that stand around it."""
    text: str
    """What is printed in it, or what OCR reads there; never to be quoted."""
    description: str = ""
    """What a vision model says of it, '' where none was asked; never to be quoted."""

    @property
    def said(self) -> str:
        """All that is known of it in words, what is missing left out: this is embedded."""
        return "\n".join(filter(None, (self.caption, self.description, self.context, self.text)))


@dataclass(frozen=True, slots=True)
class MetadataField:
    """One value of a document's metadata and where it is printed."""

    name: str
    value: str
    """As printed, or as an admin says."""
    page: int | None
    """Counted from 1; None: it is an admin's word."""
    boxes: tuple[Box, ...]
    day: str | None = None
    """Of a date that can be read in one way, as in 2024-03-01."""


def self_description(metadata: Mapping[str, MetadataField]) -> str:
    """A document's metadata in one line: ``SOP-IT-04, version 2.1, IT, effective 2024-01-15``."""
    shown = {name: one.day or one.value for name, one in metadata.items()}
    return ", ".join(phrase.format(shown[name]) for name, phrase in _PHRASES.items() if name in shown)


def kept_of(fields: Iterable[MetadataField]) -> dict[str, Any]:
    """As they are kept under ``KEY``."""
    return {one.name: [one.value, one.page, [list(box) for box in one.boxes], one.day] for one in fields}


def metadata_of(details: Mapping[str, Any], corrected: Mapping[str, str]) -> dict[str, MetadataField]:
    """The fields by name: what a reading's details hold, and over it an admin's words."""
    printed = {
        name: MetadataField(name, value, page, tuple(Box(*box) for box in boxes), day)
        for name, (value, page, boxes, day) in details.get(KEY, {}).items()
    }
    said = {name: MetadataField(name, value, None, ()) for name, value in corrected.items()}
    return {name: one for name, one in (printed | said).items() if one.value}


def says(metadata: Mapping[str, MetadataField], wanted: Mapping[str, str]) -> bool:
    """Whether a document says all of this of itself: each value as printed, in any case, or as a day."""
    return all(name in metadata and _is_value(metadata[name], value) for name, value in wanted.items())


def _is_value(one: MetadataField, value: str) -> bool:
    wanted = " ".join(value.split()).casefold()
    return wanted in (" ".join(one.value.split()).casefold(), one.day)
