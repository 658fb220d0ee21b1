"""The errors of storage.

::

    StorageError
    ├── InfrastructureError       nobody's document is to blame: retry later, for as long as it takes
    │   ├── IndexUnavailable      the index is down, or did not answer within its deadline
    │   ├── DatabaseUnavailable   SQL is locked, full or gone
    │   ├── BlobsUnavailable      the blob store is full or unreachable
    │   │   └── LostReading       the files of a reading are gone or damaged: its PDF is read again
    │   ├── EmbedderUnavailable   the endpoint that makes vectors is down, late, refusing, or sends none
    │   └── EngineStartError      an engine of our own (Weaviate child, PDF process) could not start
    ├── LeaseLost                 another worker has taken the work over: drop it, change nothing
    ├── MessageTaken              another question is answered in that message
    ├── IncompletePublication     the index holds less than was written: publish anew under a new id
    ├── UnknownTenant             the index has no such tenant
    ├── InvalidTenant             not a tenant name at all
    ├── UnknownChannel            no channel of that name
    ├── IncompleteInstallation    a file of ours is missing: retrying does not help
    ├── ChangedIndex              the home's documents are in another index
    ├── ChangedBlobs              the home's PDFs are in another store, or the store is another home's
    ├── NewerDatabase             the database was written by a newer release
    ├── BackupError               the place of a backup is full, away or refuses us
    │   └── DamagedBackup         it is unfinished, or not what was written
    ├── StillInFolder             what was to be erased would come back with the next scan
    ├── SettingsError             a setting or an argument is missing, unknown or out of bounds
    └── DocumentError             this file cannot be read as it is; the message is for an admin
        ├── NotAPdf
        ├── PasswordProtected
        ├── NoPages
        ├── TooLarge
        └── ReaderKilled          the limited child ran out of memory, CPU or time, or crashed

SDK errors are translated into these where the SDK is used. Messages say what to do; they may be
shown to an admin, never to a person in a chat (those read ``bot/core/replies/``).
"""

from pathlib import Path
from traceback import walk_tb

_ROOT = Path(__file__).parents[1]
_PACKAGES = {"bot", "ingestion", "storage"}
PROJECT_URL = "https://github.com/footnote-bot/footnote"


def docs_url(page: str) -> str:
    """Return the address of a page of the documentation, such as ``install.md#a-container``."""
    return f"{PROJECT_URL}/blob/main/docs/{page}"


class StorageError(Exception):
    """Base of every error this package raises."""


class InfrastructureError(StorageError):
    """An engine failed, not a document: the caller retries and no file's attempts are used up."""

    # Seconds that the engine asked to be left alone.
    retry_after = 0.0


class IndexUnavailable(InfrastructureError):
    """The index is down, or did not answer within its deadline."""


class DatabaseUnavailable(InfrastructureError):
    """SQL is locked, full or gone."""


class BlobsUnavailable(InfrastructureError):
    """The blob store is full or unreachable."""


class LostReading(BlobsUnavailable):
    """The files of a reading are gone or damaged; its PDF has to be read again."""


class EmbedderUnavailable(InfrastructureError):
    """The endpoint that makes vectors is down, late or refusing, or sends something else."""

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class EngineStartError(InfrastructureError):
    """A child process of ours could not be started, or died; the message says why and what to do."""


class LeaseLost(StorageError):
    """Another worker has taken the work over: drop it, change nothing."""


class MessageTaken(StorageError):
    """Another question is answered in that message."""


class IncompletePublication(StorageError):
    """The index acknowledged more chunks or vectors than it now holds."""


class UnknownTenant(StorageError):
    """The index has no tenant of this name; nothing was created."""


class InvalidTenant(StorageError, ValueError):
    """The text is not a tenant name."""


class UnknownChannel(StorageError, LookupError):
    """No channel goes by this name."""


class NewerDatabase(StorageError):
    """The database was written by a newer release, whose tables this one does not know."""


class OlderDatabase(StorageError):
    """The database lacks this release's changes of tables, and whoever looks may not make them."""


class IncompleteInstallation(StorageError):
    """A file that comes with the program is missing; no retry helps."""


class ChangedIndex(StorageError):
    """The documents in this home were published to another index than the configured one."""


class ChangedBlobs(StorageError):
    """The PDFs of this home are in another store than the configured one, or that is another home's."""


class BackupError(StorageError):
    """The place of a backup is full, away or refuses us."""


class DamagedBackup(BackupError):
    """A backup is unfinished, or not what was written; the message names what is damaged."""


class StillInFolder(StorageError):
    """What was to be erased lies in a watched folder: the next scan would bring it back."""


class SettingsError(StorageError, ValueError):
    """A setting or an argument is missing, unknown or out of bounds; the message names it."""


class DocumentError(StorageError):
    """A file that cannot be read as it is; the message tells an admin what to do."""


class NotAPdf(DocumentError):
    """The bytes are not a PDF, whatever the name says."""


class PasswordProtected(DocumentError):
    """The PDF opens only with a password."""


class NoPages(DocumentError):
    """The PDF has no page that can be read."""


class TooLarge(DocumentError):
    """The file or its page count is over the limit that is set."""


class ReaderKilled(DocumentError):
    """The limited child was stopped at a limit, or crashed."""


def raised_at(error: BaseException) -> str:
    """Type and place of an error, for logs: ``ValueError at bot/core/answering.py:12``.

    Never its message, which may quote a question or a document. The place is the innermost line of the
    product; where none took part, the innermost of all. Of a group of errors, the first one counts.
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
