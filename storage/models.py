"""Value types that cross package borders: frozen, plain, without I/O.

Pages are physical and count from 1. Boxes are fractions (0-1) of the displayed page, origin top left,
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
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from storage.errors import InvalidTenant

# Tenant names begin with the platform's name, except those that databases and indexes hold abbreviated.
_PREFIXES = {"slack": "sl", "teams": "ms", "local": "lo"}
# Prefixes whose tenant names consist of ids; all others end in a digest.
_WITH_IDS = {"sl"}
# No local channel in an admin's file may begin with one.
CHAT_PREFIXES = ("sl_", "ms_")
_TENANT = re.compile(r"sl_[A-Z0-9]{2,24}_[A-Z0-9]{2,24}|[a-z]{2,16}_[a-z2-7]{52}")

# Key of the metadata fields in ``Reading.details``.
METADATA_KEY = "metadata"

METADATA_FIELDS = (
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


# Prefix of a library's own channel. Other local channels are named after folders, which contain no slash.
LIBRARY = "library/"
# Name of the hidden channel of approved web pages: no folder and no admin's file can name it.
WEB_PAGES = "web/pages"


class TenantName(str):
    """Name of a channel's tenant (shard) in the index; always well-formed.

    Raises:
        InvalidTenant: the text is not a tenant name.
    """

    __slots__ = ()

    def __new__(cls, name: str) -> TenantName:
        if not _TENANT.fullmatch(name):
            raise InvalidTenant(f"{name!r} is not a tenant name")
        return super().__new__(cls, name)

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415 - the sandbox needs no pydantic

        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema())

    @property
    def platform(self) -> Platform:
        """Platform of the channel."""
        prefix = self.partition("_")[0]
        return Platform(next((name for name, short in _PREFIXES.items() if short == prefix), prefix))

    @property
    def workspace(self) -> str:
        """The installation in the name; '' for names that end in a digest."""
        return self.split("_")[1] if self.count("_") == 2 else ""


class Platform(str):
    """Name of a chat platform, in lower-case letters, or ``LOCAL``."""

    __slots__ = ()

    # Origin of channels that are folders or libraries.
    LOCAL: ClassVar[Platform]


Platform.LOCAL = Platform("local")


class ChannelKey(NamedTuple):
    """Identity of a conversation, taken only from a verified envelope."""

    platform: Platform
    # The platform's customer, such as a workspace, organisation or Entra tenant; '' for a local channel.
    installation: str
    # The conversation's id, without the thread. Local: the name.
    conversation: str

    @property
    def tenant(self) -> TenantName:
        """Tenant of this channel.

        Raises:
            InvalidTenant: an id holds a character that ids of its platform never hold.
        """
        prefix = _PREFIXES.get(self.platform, self.platform)
        if prefix in _WITH_IDS:
            return TenantName(f"{prefix}_{self.installation}_{self.conversation}")
        if self.platform == Platform.LOCAL:
            return TenantName(f"{prefix}_{_digest(self.conversation)}")
        conversation = self.conversation.split(";", 1)[0]
        return TenantName(f"{prefix}_{_digest(self.installation.lower(), conversation)}")


def _digest(*parts: str) -> str:
    """Return lower-case base32 of BLAKE2b-256 over length-prefixed parts, so that no two keys collide."""
    hasher = hashlib.blake2b(digest_size=32)
    for part in parts:
        data = part.encode()
        hasher.update(len(data).to_bytes(4, "big") + data)
    return base64.b32encode(hasher.digest()).decode().rstrip("=").lower()


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel as stored in SQL."""

    id: int
    tenant: TenantName
    platform: Platform
    # Display name; the tenant name if the chat channel has none.
    name: str
    # Raising it invalidates every link of the channel.
    epoch: int
    # One-to-one chat with the bot.
    is_direct: bool = False
    # As in ``ChannelKey``.
    installation: str = ""

    @property
    def is_local(self) -> bool:
        """True if it is a folder's or library's channel, which belongs to no chat."""
        return self.platform == Platform.LOCAL

    @property
    def is_library(self) -> bool:
        """True if it is a library's own channel, whose documents direct chats search."""
        return self.is_local and self.name.startswith(LIBRARY)


class Box(NamedTuple):
    """A rectangle as fractions (0-1) of the displayed page, origin top left."""

    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True, slots=True)
class PageImage:
    """An image of a page or of a part of one."""

    data: bytes
    # image/png or image/jpeg.
    media_type: str


class Rung(StrEnum):
    """Depth of a reading."""

    # Text, boxes and font-size headings; keyword search only.
    QUICK = "quick"
    # Layout analysis with tables, figures, OCR where text is missing, and vectors.
    FULL = "full"


class WordBox(NamedTuple):
    """Location of one word: text[start:end] is printed in ``box`` on ``page``."""

    start: int
    end: int
    page: int
    # Line number within the page: boxes of one line are merged into one rectangle.
    line: int
    box: Box


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its text and the box of every word."""

    number: int
    # Printed page number; '' if the file states none.
    label: str
    width: float
    # Displayed size in points.
    height: float
    text: str
    words: Sequence[WordBox]


# (offset, headings) of each section of a text, in order.
Sections = tuple[tuple[int, tuple[str, ...]], ...]


def section_at(sections: Sections, offset: int) -> tuple[str, ...]:
    """Return the headings above an offset of a text; the first section begins at 0."""
    return next(path for start, path in reversed(sections) if start <= offset)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: the unit that is embedded, indexed and cited."""

    ordinal: int
    text: str
    # cl100k_base tokens of ``text``.
    tokens: int
    # Headings above the beginning of ``text``; indexed with it.
    heading_path: tuple[str, ...]
    # Location of each word of ``text``.
    words: Sequence[WordBox]
    # (offset, page) where each page begins in ``text``; the first offset is 0.
    page_starts: tuple[tuple[int, int], ...]
    # (offset, headings) of each section of ``text``; by default ``heading_path`` covers all of it.
    sections: Sections = ()

    def __post_init__(self) -> None:
        if not self.sections:
            object.__setattr__(self, "sections", ((0, self.heading_path),))

    def section_at(self, offset: int) -> tuple[str, ...]:
        """Return the headings above an offset of ``text``."""
        return section_at(self.sections, offset)

    def page_at(self, offset: int) -> int:
        """Return the page of an offset of ``text``."""
        return next(page for start, page in reversed(self.page_starts) if start <= offset)

    @property
    def first_page(self) -> int:
        return self.page_starts[0][1]

    @property
    def last_page(self) -> int:
        return self.page_starts[-1][1]


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading one content with one generation of parser, chunker and embedder."""

    id: UUID
    sha256: str
    generation: str
    rung: Rung
    title: str
    pages: int
    chunks: int
    figures: int = 0
    # Further findings about the file, such as its metadata and OCR pages.
    details: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class WebOrigin:
    """Origin of an approved web page, whose address is the publication's ``file``."""

    host: str
    # When the server last confirmed this text.
    fetched_at: datetime | None


@dataclass(frozen=True, slots=True)
class LivePublication:
    """A live publication: one reading of one version in one channel."""

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
    # Vector space; None if it has no vectors.
    space: str | None = None
    # Figures, whose vectors the index stores behind those of the chunks.
    figures: int = 0
    # Document metadata by field name.
    metadata: Mapping[str, MetadataField] = field(default_factory=dict, compare=False)
    # Pages whose text comes from OCR.
    ocr_pages: frozenset[int] = frozenset()
    # When its version was found in its folder.
    arrived_at: datetime | None = None
    # URL fragment of each chunk's heading, '' if it has none; None for a format with pages.
    anchors: tuple[str, ...] | None = None
    # Set for an approved web page, which is cited by its address.
    web: WebOrigin | None = field(default=None, compare=False)

    @property
    def file_name(self) -> str:
        """Last part of ``file``, which distinguishes documents of one title; the address of a web page."""
        return self.file if self.web else self.file.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class CitedPlace:
    """A place in a version that an answer shows."""

    version_id: int
    page: int
    quote: str = ""
    # Rectangles of its words, as fractions of the displayed page.
    boxes: Collection[Sequence[float]] = ()
    # Its citation number [n] in the answer; None if it is not a quote of one.
    number: int | None = None
    # Id of the citation that it was made from; None if there was none.
    origin: int | None = None


@dataclass(frozen=True, slots=True)
class CitationRecord:
    """A stored citation: its link outlives the readings and chunks it came from."""

    id: int
    channel_id: int
    version_id: int
    page: int
    quote: str
    # Boxes of the quote on ``page``; empty if it could not be located.
    boxes: tuple[Box, ...]
    created_at: datetime
    # Shared by all quotes of one answer; None outside an answer, or if stored before such ids existed.
    answer_id: int | None = None
    # Its citation number [n] in that answer.
    number: int | None = None
    # Citation of another version that it was made from; None if it was made for an answer.
    origin_id: int | None = None
    # When its links were revoked; None if they are valid.
    revoked_at: datetime | None = None

    @property
    def shown(self) -> CitedPlace:
        """The place that it shows."""
        return CitedPlace(self.version_id, self.page, self.quote, self.boxes, self.number, self.id)


@dataclass(frozen=True, slots=True)
class DocumentStatus:
    """A document, as listed by ``footnote documents``."""

    channel: str
    document: UUID
    # sha256 of the live version, else of the newest one.
    version: str
    file: str
    title: str
    pages: int
    # live, waiting, reading, quarantined or deleted.
    state: str
    # None if nothing of it is live.
    rung: Rung | None
    reason: str | None
    # Metadata of the live version by field name.
    metadata: Mapping[str, MetadataField] = field(default_factory=dict)
    # Number of the live version; above 1 it replaced an earlier version.
    number: int = 0
    # When the live version was found in its folder; None if nothing is live.
    arrived_at: datetime | None = None
    # Retryable: the newest file could not be read or its copy is lost, even if an older version is live.
    can_retry: bool = False
    # Row id of the live version, else of the newest one; None if its file was never stored.
    version_id: int | None = None


@dataclass(frozen=True, slots=True)
class VersionSource:
    """Data of a version that links need."""

    version_id: int
    channel_id: int
    document_id: UUID
    sha256: str
    file: str
    title: str
    pages: int
    # Newest finished reading of this content; None if it was never read.
    reading_id: UUID | None
    number: int
    # Number of the document's newest live version.
    newest_number: int
    is_deleted: bool
    # Metadata of the version by field name.
    metadata: Mapping[str, MetadataField] = field(default_factory=dict, compare=False)
    # Pages whose text comes from OCR.
    ocr_pages: frozenset[int] = frozenset()


class FigureKind(StrEnum):
    """Kind of a figure; ``unknown`` rather than a guess."""

    BAR = "bar"
    LINE = "line"
    PIE = "pie"
    # A flow chart, map, photograph or diagram: certainly not a chart of the kinds above.
    OTHER = "other"
    UNKNOWN = "unknown"
    # Never in a reading: a quoted table that an answer shows as a picture.
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture or chart on one page; decoration is excluded."""

    page: int
    box: Box
    kind: FigureKind
    # It shows data, not only objects.
    holds_data: bool
    # Ordinal of the enclosing chunk; None on a page without text.
    chunk: int | None
    heading_path: tuple[str, ...]
    # Its caption in the document; '' if there is none.
    caption: str
    # Sentences of its chunk that mention it, or the ones around it.
    context: str
    # Text printed in it, or read from it by OCR; never quoted.
    text: str
    # Description by a vision model; '' if none was asked; never quoted.
    description: str = ""

    @property
    def embedding_text(self) -> str:
        """Caption, description, context and text, one per line: the input of the embedder."""
        return "\n".join(filter(None, (self.caption, self.description, self.context, self.text)))


@dataclass(frozen=True, slots=True)
class MetadataField:
    """A metadata value of a document and where it is printed."""

    name: str
    # As printed, or as corrected by an admin.
    value: str
    # From 1; None if an admin entered the value.
    page: int | None
    boxes: tuple[Box, ...]
    # An unambiguous date as ISO 8601, such as 2024-03-01.
    day: str | None = None


def metadata_line(metadata: Mapping[str, MetadataField]) -> str:
    """Return a document's metadata in one line: ``SOP-IT-04, version 2.1, IT, effective 2024-01-15``."""
    shown = {name: one.day or one.value for name, one in metadata.items()}
    return ", ".join(phrase.format(shown[name]) for name, phrase in _PHRASES.items() if name in shown)


def dump_metadata(fields: Iterable[MetadataField]) -> dict[str, Any]:
    """Return the fields in the form that is stored under ``METADATA_KEY``."""
    return {one.name: [one.value, one.page, [list(box) for box in one.boxes], one.day] for one in fields}


def load_metadata(details: Mapping[str, Any], corrected: Mapping[str, str]) -> dict[str, MetadataField]:
    """Return the metadata by field name: a reading's values, overridden by an admin's corrections."""
    printed = {
        name: MetadataField(name, value, page, tuple(Box(*box) for box in boxes), day)
        for name, (value, page, boxes, day) in details.get(METADATA_KEY, {}).items()
    }
    said = {name: MetadataField(name, value, None, ()) for name, value in corrected.items()}
    return {name: one for name, one in (printed | said).items() if one.value}


def matches_metadata(metadata: Mapping[str, MetadataField], wanted: Mapping[str, str]) -> bool:
    """True if a document's metadata has all these values: as printed, ignoring case, or as an ISO date."""
    return all(name in metadata and _is_value(metadata[name], value) for name, value in wanted.items())


def _is_value(one: MetadataField, value: str) -> bool:
    wanted = " ".join(value.split()).casefold()
    return wanted in (" ".join(one.value.split()).casefold(), one.day)
