"""List of readers: a new format is a module beside this one, and a line here."""

from __future__ import annotations

from storage.readers.base import Readers
from storage.readers.html import HTML_READER
from storage.readers.pdf import PDF_READER

READERS = Readers(PDF_READER, HTML_READER)
