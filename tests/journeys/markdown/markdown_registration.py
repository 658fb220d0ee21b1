"""Registration of the Markdown reader: in the product, one line of ``storage/readers/registry.py``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from markdown_reader import MARKDOWN_READER

from storage.readers.registry import READERS


@contextmanager
def markdown_registered() -> Iterator[None]:
    """Read Markdown until the end of the block."""
    READERS.register(MARKDOWN_READER)
    try:
        yield
    finally:
        READERS.unregister(MARKDOWN_READER)
