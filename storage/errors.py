"""Errors of storage.

::

    StorageError
    ├── InfrastructureError       no document is to blame: retried without limit
    │   ├── IndexUnavailable      the index is down, or missed its deadline
    │   ├── DatabaseUnavailable   SQL is locked, full or unreachable
    │   ├── BlobsUnavailable      the blob store is full or unreachable
    │   │   └── LostReading       a reading's files are missing or corrupt: its PDF is read again
    │   ├── EmbedderUnavailable   the embedding endpoint is down, slow, refusing, or returns no vectors
    │   └── EngineStartError      a child process (Weaviate, PDF) could not start
    ├── LeaseLost                 another worker has claimed the work: drop it, change nothing
    ├── MessageTaken              the message already holds the answer to another question
    ├── IncompletePublication     the index holds less than was written: publish again under a new id
    ├── UnknownTenant             the index has no such tenant
    ├── InvalidTenant             malformed tenant name
    ├── UnknownChannel            no channel of that name
    ├── IncompleteInstallation    a bundled file is missing: retrying does not help
    ├── ChangedIndex              the home's documents are in another index
    ├── ChangedBlobs              the home's PDFs are in another store, or the store is another home's
    ├── NewerDatabase             the database was written by a newer release
    ├── OlderDatabase             the database lacks migrations, and a reader may not run them
    ├── BackupError               the backup target is full, unreachable or refuses access
    │   └── DamagedBackup         the backup is incomplete or corrupt
    ├── StillInFolder             the next scan would bring back what is to be erased
    ├── SettingsError             a setting or an argument is missing, unknown or out of bounds
    └── DocumentError             the file cannot be read; the message is for an admin
        ├── NotAPdf
        ├── PasswordProtected
        ├── NoPages
        ├── TooLarge
        └── ReaderKilled          the sandboxed child hit a memory, CPU or time limit, or crashed

SDK errors are translated into these where the SDK is used. Messages say what to do; admins may read
them, people in a chat never do (those read ``bot/core/replies/``).
"""

from pathlib import Path
from traceback import walk_tb

_ROOT = Path(__file__).parents[1]
_PACKAGES = {"bot", "ingestion", "storage"}
PROJECT_URL = "https://github.com/footnote-bot/footnote"


def docs_url(page: str) -> str:
    """Return the URL of a documentation page, such as ``install.md#a-container``."""
    return f"{PROJECT_URL}/blob/main/docs/{page}"


class StorageError(Exception):
    """Base of every error that this package raises."""


class InfrastructureError(StorageError):
    """A failure of an engine, not of a document: the caller retries, and no file's attempts are used up."""

    # Seconds of the engine's Retry-After; 0 if it sent none.
    retry_after = 0.0


class IndexUnavailable(InfrastructureError):
    """Raised if the index is down, or misses its deadline."""


class DatabaseUnavailable(InfrastructureError):
    """Raised if SQL is locked, full or unreachable."""


class BlobsUnavailable(InfrastructureError):
    """Raised if the blob store is full or unreachable."""


class LostReading(BlobsUnavailable):
    """Raised if a reading's files are missing or corrupt; its PDF has to be read again."""


class EmbedderUnavailable(InfrastructureError):
    """Raised if the embedding endpoint is down, slow or refusing, or returns no valid vectors."""

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class EngineStartError(InfrastructureError):
    """Raised if a child process could not be started, or died; the message says why and what to do."""


class LeaseLost(StorageError):
    """Raised if another worker has claimed the work: drop it, change nothing."""


class MessageTaken(StorageError):
    """Raised if the message already holds the answer to another question."""


class IncompletePublication(StorageError):
    """Raised if the index holds fewer chunks or vectors than it acknowledged."""


class UnknownTenant(StorageError):
    """Raised if the index has no tenant of this name; nothing was created."""


class InvalidTenant(StorageError, ValueError):
    """Raised if the text is not a tenant name."""


class UnknownChannel(StorageError, LookupError):
    """Raised if no channel has this name."""


class NewerDatabase(StorageError):
    """Raised if the database was written by a newer release with unknown tables."""


class OlderDatabase(StorageError):
    """Raised if the database lacks migrations of this release, and a read-only caller may not run them."""


class IncompleteInstallation(StorageError):
    """Raised if a bundled file is missing; retrying does not help."""


class ChangedIndex(StorageError):
    """Raised if the home's documents were published to another index than the configured one."""


class ChangedBlobs(StorageError):
    """Raised if the home's PDFs are in another store than the configured one, or that is another home's."""


class BackupError(StorageError):
    """Raised if the backup target is full, unreachable or refuses access."""


class DamagedBackup(BackupError):
    """Raised if a backup is incomplete or corrupt; the message names the damaged part."""


class StillInFolder(StorageError):
    """Raised if content to be erased lies in a watched folder: the next scan would bring it back."""


class SettingsError(StorageError, ValueError):
    """Raised if a setting or an argument is missing, unknown or out of bounds; the message names it."""


class DocumentError(StorageError):
    """Raised if a file cannot be read; the message tells an admin what to do."""


class NotAPdf(DocumentError):
    """Raised if the bytes are not a PDF, whatever the file name says."""


class PasswordProtected(DocumentError):
    """Raised if the PDF needs a password."""


class NoPages(DocumentError):
    """Raised if no page of the PDF can be read."""


class TooLarge(DocumentError):
    """Raised if the file size or page count exceeds the configured limit."""


class ReaderKilled(DocumentError):
    """Raised if the sandboxed child crashed or hit a limit."""


def raised_at(error: BaseException) -> str:
    """Return type and place of an error, for logs: ``ValueError at bot/answers/pipeline.py:12``.

    The message is left out because it may quote a question or a document. The place is the innermost frame of
    the product, else the innermost of all. An exception group is represented by its first error.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    places = [(Path(frame.f_code.co_filename), line) for frame, line in walk_tb(error.__traceback__)]
    ours = [(file.relative_to(_ROOT), line) for file, line in places if file.is_relative_to(_ROOT)]
    product = [(file, line) for file, line in ours if file.parts[0] in _PACKAGES]
    if not (known := product or places):
        return type(error).__name__
    file, line = known[-1]
    return f"{type(error).__name__} at {file if product else file.name}:{line}"
