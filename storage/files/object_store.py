"""Object storage: files at any fsspec URL, each of which appears complete or not at all.

Calls block on disk or network, so run them in a thread. No error repeats the URL, which may hold a password.
"""

from __future__ import annotations

import copy
import errno
import hashlib
import hmac
import math
import os
import shutil
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from fsspec.callbacks import Callback
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from storage.clock import monotonic_seconds
from storage.errors import SettingsError, StorageError
from storage.settings import AwsSettings

BLOCK = 1 << 20
# Timeouts after which a silent store counts as unreachable: users wait for it.
CONNECT_SECONDS, READ_SECONDS = 2.0, 4.0
# After a failure, calls fail fast for this time.
FAIL_FAST_SECONDS = 3.0
# The largest PDF that the settings allow; no derived file is larger.
MAX_FILE_BYTES = 4096 * 1024 * 1024
SEAL_BYTES = hashlib.sha256().digest_size
# Names of the modification time in different fsspec file systems.
_MTIME_KEYS = ("LastModified", "mtime", "last_modified", "updated", "created")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """File in a listing."""

    size: int
    # Age; 0 if the store does not report it.
    seconds: float


def hash_file(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def space_for_seal() -> bytes:
    """Return the placeholder with which a file for ``put_sealed`` begins; the seal overwrites it."""
    return bytes(SEAL_BYTES)


class _TooLarge(Exception):
    """The file exceeds the limit."""


class _Limit(Callback):  # type: ignore[misc]  # fsspec has no types
    """Aborts a download that is announced, or turns out, to be too large."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._max_bytes = max_bytes

    def call(self, hook_name: str | None = None, **kwargs: Any) -> None:
        """Compare the announced and the received size with the limit."""
        if max(self.size or 0, self.value) > self._max_bytes:
            raise _TooLarge


class ObjectStore:
    """Folder in object storage; names are paths without a leading slash.

    Every method raises the given error if the store is full, unreachable or refuses access.
    """

    def __init__(
        self,
        url: str,
        error: type[StorageError],
        name: str,
        account: AwsSettings | None = None,
        *,
        is_interactive: bool = False,
        key: bytes | None = None,
    ) -> None:
        """Parse the URL; nothing is created or requested yet.

        Args:
            url: an fsspec URL.
            error: the exception to raise.
            name: how messages call the store, as in "the blob store".
            account: credentials for S3; None: found as Amazon's own tools do.
            is_interactive: users wait for it: time out after seconds, then fail fast for a while.
            key: HMAC key that seals files, so that a party with write access cannot forge them.

        Raises:
            SettingsError: no installed package supports the protocol, or the host cannot exist.
            StorageError: ``error``, from a package that connects at once.
        """
        self._error, self._name, self._is_impatient, self._key = error, name, is_interactive, key
        self._rests_until = 0.0
        options = _s3_options(account, is_interactive) if url.startswith(("s3://", "s3a://")) else {}
        try:
            self._system, self._root = url_to_fs(
                url, skip_instance_cache=True, use_listings_cache=False, **options
            )
        except ImportError as fault:
            raise SettingsError(f"the URL of {name} needs another package: {fault}") from fault
        except UnicodeError as fault:
            raise SettingsError(f"the URL of {name} has an invalid host") from fault
        except ValueError as fault:
            raise SettingsError(f"the URL of {name} has an unknown protocol or no host") from fault
        except OSError as fault:  # some packages connect at once
            raise error(f"{name} cannot be reached: {fault.strerror or type(fault).__name__}") from fault
        except Exception as fault:  # fsspec packages raise many error types
            raise SettingsError(f"the URL of {name} cannot be opened ({type(fault).__name__})") from fault
        if options:
            self._system.retries = 1  # the caller retries
        self._is_local = isinstance(self._system, LocalFileSystem)

    @property
    def local_folder(self) -> Path | None:
        """Folder on this machine; None for remote storage."""
        return Path(self._root) if self._is_local else None

    def read(self, name: str, max_bytes: int = MAX_FILE_BYTES) -> bytes | None:
        """Read a file; return b"" if it exceeds ``max_bytes``, None if it does not exist."""
        with tempfile.TemporaryDirectory(prefix="footnote-") as folder, suppress(FileNotFoundError):
            self.copy_to(name, target := Path(folder) / "file", max_bytes)
            return target.read_bytes()
        return None

    def size(self, name: str) -> int | None:
        """Return a file's size in bytes; None if it does not exist."""
        with self._translated_errors("be read"):
            try:
                return int(self._system.info(self._path(name))["size"] or 0)
            except FileNotFoundError:
                return None

    def listed(self, folder: str) -> dict[str, StoredFile]:
        """Return every file below a folder, by its base name."""
        with self._translated_errors("be read"):
            try:
                found: dict[str, Any] = self._system.find(self._path(folder), detail=True)
            except FileNotFoundError:
                return {}
        now = time.time()
        return {
            name.rpartition("/")[2]: StoredFile(int(info["size"] or 0), _age(info, now))
            for name, info in found.items()
            if not name.rpartition("/")[2].startswith(".")  # an unfinished draft
        }

    def copy_to(self, name: str, target: Path, max_bytes: int | None = MAX_FILE_BYTES) -> str:
        """Download a file to ``target``, which must not exist; return the sha256 of what arrived.

        A file of more than ``max_bytes`` leaves an empty target: a party with write access to the store could
        fill the disk.

        Raises:
            FileNotFoundError: there is none.
        """
        with self._translated_errors("be read"):
            try:
                if self._is_local:
                    _copy_limited(Path(self._path(name)), target, max_bytes)
                else:
                    limit = {} if max_bytes is None else {"callback": _Limit(max_bytes)}
                    self._system.get_file(self._path(name), str(target), **limit)
            except _TooLarge:
                target.write_bytes(b"")
        return hash_file(target)

    def copy_sealed(self, name: str, target: Path) -> bool:
        """Download a file written by ``put_sealed``, with its seal; return True if the seal is valid.

        Raises:
            FileNotFoundError: there is none.
        """
        self.copy_to(name, target)
        with target.open("rb") as file:
            return hmac.compare_digest(file.read(SEAL_BYTES), self._seal(file, name))

    def put_sealed(self, file: Path, name: str) -> None:
        """Upload a file that begins with ``space_for_seal``, after overwriting that with the seal."""
        with file.open("r+b") as draft:
            draft.seek(SEAL_BYTES)
            seal = self._seal(draft, name)
            draft.seek(0)
            draft.write(seal)
        self.put(file, name)

    def _seal(self, rest: BinaryIO, name: str) -> bytes:
        """Return the HMAC of the rest of a file and its name, so that none can pass for another."""
        if self._key is None:
            raise ValueError("this store has no key")
        code = hmac.new(self._key, f"{name}\0".encode(), hashlib.sha256)
        while block := rest.read(BLOCK):
            code.update(block)
        return code.digest()

    def put(self, file: Path, name: str) -> None:
        """Upload a file atomically; in a folder, by a rename.

        Raises:
            FileNotFoundError: there is no such file to copy.
        """
        with self._translated_errors("be written"):
            try:
                if self._is_local:
                    _copy_whole(file, Path(self._path(name)))
                else:
                    self._system.put_file(str(file), self._path(name))
            except FileNotFoundError as error:
                if not file.exists():
                    raise
                # FileNotFoundError would mean that the source file is missing.
                raise OSError(errno.ENXIO, "there is no such bucket or folder") from error

    def remove(self, names: Collection[str]) -> None:
        """Remove files; idempotent."""
        paths = [self._path(name) for name in names]
        with self._translated_errors("be written"):
            if len(paths) > 1 and not self._is_local:
                with suppress(FileNotFoundError):
                    self._system.rm(paths)  # S3 deletes up to a thousand per request
                    return
            for path in paths:
                with suppress(FileNotFoundError):
                    self._system.rm_file(path)

    def remove_folder(self, folder: str) -> None:
        """Remove a folder recursively, drafts included; idempotent."""
        with self._translated_errors("be written"), suppress(FileNotFoundError):
            self._system.rm(self._path(folder), recursive=True)

    def background_copy(self) -> ObjectStore:
        """Return a separate handle for background calls, whose failures do not make others fail fast."""
        return copy.copy(self)

    def verify_access(self) -> None:
        """Verify access by writing, reading and removing a file."""
        name = f"trial/{uuid4().hex}"
        with tempfile.NamedTemporaryFile(prefix="footnote-") as draft:
            draft.write(bytes(16))
            draft.flush()
            self.put(Path(draft.name), name)
        try:
            if self.read(name) != bytes(16):
                raise self._error(f"{self._name} returned different data than was written")
        finally:
            self.remove([name])

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    @contextmanager
    def _translated_errors(self, what: str) -> Iterator[None]:
        if monotonic_seconds() < self._rests_until:
            raise self._error(f"{self._name} cannot {what}: it is not responding; retrying shortly")
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            self._fail_fast()
            reason = error.strerror or type(error).__name__
            raise self._error(f"{self._name} cannot {what}: {reason}") from error
        except Exception as error:  # fsspec packages raise many error types
            self._fail_fast()
            raise self._error(f"{self._name} cannot {what} ({type(error).__name__})") from error

    def _fail_fast(self) -> None:
        if self._is_impatient:
            self._rests_until = monotonic_seconds() + FAIL_FAST_SECONDS


def _copy_limited(file: Path, target: Path, max_bytes: int | None) -> None:
    left = math.inf if max_bytes is None else max_bytes
    with file.open("rb") as source, target.open("wb") as copied:
        while block := source.read(BLOCK):
            left -= len(block)
            if left < 0:
                raise _TooLarge
            copied.write(block)


def _copy_whole(file: Path, place: Path) -> None:
    """Copy to a draft, fsync it, then rename it into place."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = place.with_name(f".{place.name}.{uuid4().hex}")
    try:
        with file.open("rb") as source, draft.open("wb") as target:
            draft.chmod(0o600)
            shutil.copyfileobj(source, target, BLOCK)
            target.flush()
            os.fsync(target.fileno())
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)


def _s3_options(account: AwsSettings | None, is_interactive: bool) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if account is not None:
        secret, token = account.aws_secret_access_key, account.aws_session_token
        options = {
            "key": account.aws_access_key_id,
            "secret": secret.get_secret_value() if secret else None,
            "token": token.get_secret_value() if token else None,
            "endpoint_url": account.aws_endpoint_url,
        }
    if is_interactive:
        options["config_kwargs"] = {
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": READ_SECONDS,
            "retries": {"total_max_attempts": 1},
        }
    return options


def _age(info: dict[str, Any], now: float) -> float:
    moment = next((info[name] for name in _MTIME_KEYS if info.get(name) is not None), None)
    if isinstance(moment, datetime):
        return now - moment.timestamp()
    return now - float(moment) if isinstance(moment, int | float) else 0.0
