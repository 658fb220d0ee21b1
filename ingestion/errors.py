"""Exceptions of ingestion.

::

    IngestionError
    ├── FileChanged      the file changed during the copy; retried at a later scan
    ├── NotAFile         a link, pipe, device or vanished entry
    ├── WebPageError     an approved web page is unavailable; the message is for an admin
    └── FileRefused      the file itself is at fault; the message says what an admin can do
        └── FileUnreadable  permissions or disk are at fault; retried even if the file has not changed

Errors in a document's content are ``storage.errors.DocumentError``, errors of an engine
``storage.errors.InfrastructureError``.
"""


class IngestionError(Exception):
    """Base class of this package's exceptions."""


class FileChanged(IngestionError):
    """The file changed while it was copied."""


class NotAFile(IngestionError):
    """No regular file of this name exists (any more)."""


class WebPageError(IngestionError):
    """An approved web page cannot be fetched or read; the message is for an admin."""


class FileRefused(IngestionError):
    """The file's content cannot be stored; the message is for an admin."""


class FileUnreadable(FileRefused):
    """The file cannot be read at the moment; it is retried later, changed or not."""
