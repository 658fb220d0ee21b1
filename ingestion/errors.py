"""The errors of ingestion.

::

    IngestionError
    ├── FileChanged      the file changed while it was copied: it is tried at a later scan
    ├── NotAFile        a link, pipe, device or vanished entry: nothing to take
    ├── WebPageError    an approved web page cannot be had; the message is for an admin
    └── FileRefused         the file itself is the reason; the message says what an admin can do
        └── FileUnreadable  its rights or its disk are: it is tried again without having changed

What goes wrong with a document's content is a ``storage.errors.DocumentError``; what goes wrong with
an engine is a ``storage.errors.InfrastructureError``.
"""


class IngestionError(Exception):
    """Base of every error this package raises."""


class FileChanged(IngestionError):
    """The file changed while it was copied."""


class NotAFile(IngestionError):
    """There is no regular file of this name (any more)."""


class WebPageError(IngestionError):
    """An approved web page cannot be fetched or read; the message is a sentence for an admin."""


class FileRefused(IngestionError):
    """The bytes of the file cannot be stored; the message is a sentence for an admin."""


class FileUnreadable(FileRefused):
    """The file cannot be read as things are; it is tried again in a while, changed or not."""
