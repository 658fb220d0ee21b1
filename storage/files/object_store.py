"""Files at any address that fsspec reaches, each of which appears whole or not at all.

Every call waits for a disk or a network, so run it in a thread. No message repeats the address, which may
hold a password.
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

from storage.clock import steady_seconds
from storage.errors import SettingsError, StorageError
from storage.settings import AwsSettings

BLOCK = 1 << 20
# How long a store may be silent before it counts as away: people wait for what is asked of it.
CONNECT_SECONDS, READ_SECONDS = 2.0, 4.0
# After it was found away, for so long nobody else waits to find out again.
REST_SECONDS = 3.0
# The largest PDF that the settings allow; nothing that is made of one is larger.
MAX_FILE_BYTES = 4096 * 1024 * 1024
SEAL_BYTES = hashlib.sha256().digest_size
# What file systems call the time of a file's last change.
_MOMENTS = ("LastModified", "mtime", "last_modified", "updated", "created")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as a listing shows it."""

    size: int
    # Since it was written; 0 where the store does not say.
    seconds: float


def hash_file(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def space_for_seal() -> bytes:
    """Begins a file that ``put_sealed`` is to send; the seal takes its place."""
    return bytes(SEAL_BYTES)


class _TooLarge(Exception):
    """More comes than was allowed."""


class _Limit(Callback):  # type: ignore[misc]  # fsspec has no types
    """Stops a download that is announced, or turns out, to be too large."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._max_bytes = max_bytes

    def call(self, hook_name: str | None = None, **kwargs: Any) -> None:
        """Count what was announced and what came."""
        if max(self.size or 0, self.value) > self._max_bytes:
            raise _TooLarge


class ObjectStore:
    """A folder elsewhere. Names in it are paths without a leading slash.

    Every method raises the error that was chosen when the store is full, away or refuses us.
    """

    def __init__(
        self,
        url: str,
        error: type[StorageError],
        name: str,
        account: AwsSettings | None = None,
        *,
        is_impatient: bool = False,
        key: bytes | None = None,
    ) -> None:
        """Choose the place; nothing is made or asked yet.

        Args:
            url: as fsspec reads it.
            error: what is raised.
            name: what the place is called in messages, as in "the blob store".
            account: for S3; None: its packages find one, as Amazon's own tools do.
            is_impatient: people wait for it: a silent store is away after seconds, and then left alone.
            key: seals files, so that who may write to the store cannot put others in their place.

        Raises:
            SettingsError: no installed package knows the protocol, or the host cannot exist.
            StorageError: ``error``, of a package that connects at once.
        """
        self._error, self._name, self._is_impatient, self._key = error, name, is_impatient, key
        self._rests_until = 0.0
        options = _s3_options(account, is_impatient) if url.startswith(("s3://", "s3a://")) else {}
        try:
            self._system, self._root = url_to_fs(
                url, skip_instance_cache=True, use_listings_cache=False, **options
            )
        except ImportError as fault:
            raise SettingsError(f"the address of {name} needs a further package: {fault}") from fault
        except UnicodeError as fault:
            raise SettingsError(f"the address of {name} names a host that cannot exist") from fault
        except ValueError as fault:
            raise SettingsError(
                f"the address of {name} begins with a protocol that we do not know, or names no host"
            ) from fault
        except OSError as fault:  # some packages connect at once
            raise error(f"{name} cannot be reached: {fault.strerror or type(fault).__name__}") from fault
        except Exception as fault:  # each package behind fsspec has errors of its own
            raise SettingsError(f"the address of {name} cannot be opened ({type(fault).__name__})") from fault
        if options:
            self._system.retries = 1  # whoever asked tries again
        self._is_local = isinstance(self._system, LocalFileSystem)

    @property
    def local_folder(self) -> Path | None:
        """The folder on this machine; None of a place elsewhere."""
        return Path(self._root) if self._is_local else None

    def read(self, name: str, max_bytes: int = MAX_FILE_BYTES) -> bytes | None:
        """Read a file: nothing where it holds more than ``max_bytes``, None where there is no file."""
        with tempfile.TemporaryDirectory(prefix="footnote-") as folder, suppress(FileNotFoundError):
            self.copy_to(name, target := Path(folder) / "file", max_bytes)
            return target.read_bytes()
        return None

    def size(self, name: str) -> int | None:
        """Bytes of a file; None where there is none."""
        with self._translated_errors("be read"):
            try:
                return int(self._system.info(self._path(name))["size"] or 0)
            except FileNotFoundError:
                return None

    def listed(self, folder: str) -> dict[str, StoredFile]:
        """Return every file below a folder, by the last part of its name."""
        with self._translated_errors("be read"):
            try:
                found: dict[str, Any] = self._system.find(self._path(folder), detail=True)
            except FileNotFoundError:
                return {}
        now = time.time()
        return {
            name.rpartition("/")[2]: StoredFile(int(info["size"] or 0), _age(info, now))
            for name, info in found.items()
            if not name.rpartition("/")[2].startswith(".")  # a draft that is being written
        }

    def copy_to(self, name: str, target: Path, max_bytes: int | None = MAX_FILE_BYTES) -> str:
        """Write a file of the store to ``target``, which is no file yet; returns the sha256 of what came.

        Nothing stays of a file of more than ``max_bytes``: who can write to the store could fill the disk.

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
        """Write what ``put_sealed`` kept to ``target``, its seal included; True if it is that.

        Raises:
            FileNotFoundError: there is none.
        """
        self.copy_to(name, target)
        with target.open("rb") as file:
            return hmac.compare_digest(file.read(SEAL_BYTES), self._seal(file, name))

    def put_sealed(self, file: Path, name: str) -> None:
        """Keep a copy of a file that begins with ``space_for_seal``; its seal is written there first."""
        with file.open("r+b") as draft:
            draft.seek(SEAL_BYTES)
            seal = self._seal(draft, name)
            draft.seek(0)
            draft.write(seal)
        self.put(file, name)

    def _seal(self, rest: BinaryIO, name: str) -> bytes:
        """Return the code of a file from here on, under its name: none can be shown as another one."""
        if self._key is None:
            raise ValueError("this store has no key")
        code = hmac.new(self._key, f"{name}\0".encode(), hashlib.sha256)
        while block := rest.read(BLOCK):
            code.update(block)
        return code.digest()

    def put(self, file: Path, name: str) -> None:
        """Keep a copy of a file: a store shows it when it is whole, in a folder that takes a rename.

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
                raise OSError(errno.ENXIO, "there is no such bucket or folder") from error

    def remove(self, names: Collection[str]) -> None:
        """Remove files; those that are not there stay so."""
        paths = [self._path(name) for name in names]
        with self._translated_errors("be written"):
            if len(paths) > 1 and not self._is_local:
                with suppress(FileNotFoundError):
                    self._system.rm(paths)  # S3 takes a thousand at once
                    return
            for path in paths:
                with suppress(FileNotFoundError):
                    self._system.rm_file(path)

    def remove_folder(self, folder: str) -> None:
        """Remove a folder with all that lies in it, drafts too; one that is not there stays so."""
        with self._translated_errors("be written"), suppress(FileNotFoundError):
            self._system.rm(self._path(folder), recursive=True)

    def apart(self) -> ObjectStore:
        """The same place for calls that nobody waits for: when they fail, others need not wait to ask."""
        return copy.copy(self)

    def try_out(self) -> None:
        """Write a file, read it and remove it; returns when all of that may be done."""
        name = f"trial/{uuid4().hex}"
        with tempfile.NamedTemporaryFile(prefix="footnote-") as draft:
            draft.write(bytes(16))
            draft.flush()
            self.put(Path(draft.name), name)
        try:
            if self.read(name) != bytes(16):
                raise self._error(f"{self._name} gives back something else than was written")
        finally:
            self.remove([name])

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    @contextmanager
    def _translated_errors(self, what: str) -> Iterator[None]:
        if steady_seconds() < self._rests_until:
            raise self._error(f"{self._name} cannot {what}: it did not answer a moment ago")
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            self._rest()
            reason = error.strerror or type(error).__name__
            raise self._error(f"{self._name} cannot {what}: {reason}") from error
        except Exception as error:  # each package behind fsspec has errors of its own
            self._rest()
            raise self._error(f"{self._name} cannot {what} ({type(error).__name__})") from error

    def _rest(self) -> None:
        if self._is_impatient:
            self._rests_until = steady_seconds() + REST_SECONDS


def _copy_limited(file: Path, target: Path, max_bytes: int | None) -> None:
    left = math.inf if max_bytes is None else max_bytes
    with file.open("rb") as source, target.open("wb") as copied:
        while block := source.read(BLOCK):
            left -= len(block)
            if left < 0:
                raise _TooLarge
            copied.write(block)


def _copy_whole(file: Path, place: Path) -> None:
    """Copy to a draft of its own, which takes the place when it is on the disk."""
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


def _s3_options(account: AwsSettings | None, is_impatient: bool) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if account is not None:
        secret, token = account.aws_secret_access_key, account.aws_session_token
        options = {
            "key": account.aws_access_key_id,
            "secret": secret.get_secret_value() if secret else None,
            "token": token.get_secret_value() if token else None,
            "endpoint_url": account.aws_endpoint_url,
        }
    if is_impatient:
        options["config_kwargs"] = {
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": READ_SECONDS,
            "retries": {"total_max_attempts": 1},
        }
    return options


def _age(info: dict[str, Any], now: float) -> float:
    moment = next((info[name] for name in _MOMENTS if info.get(name) is not None), None)
    if isinstance(moment, datetime):
        return now - moment.timestamp()
    return now - float(moment) if isinstance(moment, int | float) else 0.0
