"""Interface of a reader, and the registry of media types: everything that must know a format asks there."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from storage.pdf.pdf_process import PdfProcess

# Bytes at the beginning of a file that may contain its signature, and at its end for its trailer.
HEAD_BYTES, TAIL_BYTES = 1024, 2048


@dataclass(frozen=True, slots=True)
class MediaType:
    """A format of files, as names, bytes and messages show it."""

    # Like ``application/pdf``.
    name: str
    # With an article and in the plural, for messages: "a PDF", "PDFs".
    singular: str
    plural: str
    # In lower case; an upload without one gets the first.
    suffixes: tuple[str, ...]
    # Bytes near the beginning of every file; empty for a format without any.
    signature: bytes = b""
    # Bytes near the end of every complete file; without any, each file rests as if it were truncated.
    trailer: bytes = b""

    def begins(self, head: bytes) -> bool:
        """True if a file with these first bytes may have this type."""
        return self.signature in head[:HEAD_BYTES]

    def ends(self, tail: bytes) -> bool:
        """True if a file with these last bytes is certainly complete."""
        return bool(self.trailer) and self.trailer in tail


@dataclass(frozen=True, slots=True)
class Reader:
    """Turns a file into pages of text; ``read`` opens it in a sandboxed process only."""

    media_types: tuple[MediaType, ...]
    # Returns the pages, for "chunk" as ``storage.pdf.protocol.parse_reading`` parses them; raises
    # ``DocumentError``.
    read: Callable[[PdfProcess, Path], Awaitable[bytes]]
    # Bump when it yields other pages or words for a file, or their stored form changes.
    version: str
    # Job of ``ingestion.compute_program`` that splits what ``read`` returns.
    chunk_job: str = "chunk"
    # Its pages can be drawn: layout analysis and OCR complete their text.
    draws_pages: bool = False


class Readers:
    """Registry of readers, the preferred format first."""

    def __init__(self, *readers: Reader) -> None:
        self._readers = list(readers)

    def register(self, reader: Reader) -> None:
        """Read its media types from now on; ``unregister`` undoes it."""
        self._readers.append(reader)

    def unregister(self, reader: Reader) -> None:
        """Stop reading its media types."""
        self._readers.remove(reader)

    @property
    def media_types(self) -> list[MediaType]:
        """All formats of files; those without a suffix are only found on the web."""
        return [one for reader in self._readers for one in reader.media_types if one.suffixes]

    @property
    def accepted(self) -> str:
        """Suffixes and media types of all formats, as a browser's choice of files takes them."""
        return ",".join(part for one in self.media_types for part in (*one.suffixes, one.name))

    @property
    def version(self) -> str:
        """Versions of all readers: when one changes, all contents are read again."""
        return "+".join(reader.version for reader in self._readers)

    def type_of(self, name: str, declared: str = "") -> MediaType | None:
        """Return the type of a file by its name, else by its declared media type; None if unsupported."""
        folded, declared = name.lower(), declared.partition(";")[0].strip()
        types = self.media_types
        named = (one for one in types if folded.endswith(one.suffixes))
        return next(named, None) or next((one for one in types if one.name == declared), None)

    def reader_of(self, names: Iterable[str], file: Path) -> Reader:
        """Return the reader for a content, by the names of its files; the first reader if none is known.

        An address says nothing about the type of a web page, so that one is told by its first bytes.
        """
        found = {self.type_of(name) for name in names if "://" not in name}
        if not found:
            with file.open("rb") as source:
                head = source.read(HEAD_BYTES)
            types = [one for reader in self._readers for one in reader.media_types if one.signature]
            found = {one for one in types if head.startswith(one.signature)}
        return next((one for one in self._readers if found & {*one.media_types}), self._readers[0])

    def draws_pages(self, name: str) -> bool:
        """True if the pages of a file of this name can be drawn."""
        kind = self.type_of(name)
        return any(one.draws_pages for one in self._readers if kind in one.media_types)

    def split_suffix(self, name: str) -> tuple[str, str]:
        """Return a file name without its suffix, and the suffix; '' for that of an unknown type."""
        suffixes = (one for kind in self.media_types for one in kind.suffixes)
        suffix = next((one for one in suffixes if name.lower().endswith(one)), "")
        return name[: len(name) - len(suffix)], suffix

    def names_in(self, text: str) -> list[str]:
        """Return the names of files that a text mentions."""
        endings = "|".join(re.escape(one) for kind in self.media_types for one in kind.suffixes)
        return re.findall(rf"[\w().-]+(?:{endings})\b", text, re.IGNORECASE)
