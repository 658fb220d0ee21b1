"""SFTP share through paramiko, the client that fsspec uses.

fsspec's own layer accepts any host key, follows links, and cannot list a folder with a name that is not
UTF-8; so we list folders ourselves.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from stat import S_ISDIR, S_ISREG

import paramiko
from paramiko.sftp import CMD_CLOSE, CMD_OPENDIR, CMD_READDIR, CMD_REALPATH

from ingestion.sources.base import FileStat, Parts
from ingestion.sources.shares.address import ShareAddress
from ingestion.sources.shares.remote_source import (
    ErrorTable,
    ShareEntry,
    ShareError,
    ShareFileMissing,
    Stream,
    share_error_by_type,
    wrong_account,
)
from ingestion.sources.shares.settings import ShareSettings, secret

ACCOUNT = "FOOTNOTE_SFTP_USER and FOOTNOTE_SFTP_PASSWORD or FOOTNOTE_SFTP_KEY"
_OTHER_KEY = (
    "The server shows another key than the one in FOOTNOTE_SFTP_KNOWN_HOSTS, so we do not talk to it: ask "
    "who runs it whether its key was changed."
)
_UNKNOWN_KEY = (
    "The server's key is not in FOOTNOTE_SFTP_KNOWN_HOSTS: check it, then add it with "
    "ssh-keyscan SERVER >> ~/.ssh/known_hosts."
)
_BROKE_OFF = "The SFTP server did not answer as one, or broke off: is it up, and the port right?"
_BY_TYPE: ErrorTable = (
    ((paramiko.BadHostKeyException,), partial(ShareError, _OTHER_KEY)),
    ((paramiko.AuthenticationException, paramiko.PasswordRequiredException), partial(wrong_account, ACCOUNT)),
    ((paramiko.SSHException,), partial(ShareError, _BROKE_OFF)),
)


class _Files(paramiko.SFTPClient):  # type: ignore[misc]  # paramiko has no types
    """SFTP client with file names as bytes."""

    def entries(self, folder: bytes) -> Iterator[tuple[bytes, paramiko.SFTPAttributes]]:
        """Yield (name, attributes) of a folder's entries; links are not followed."""
        handle = self._request(CMD_OPENDIR, folder)[1].get_string()
        try:
            while True:
                message = self._request(CMD_READDIR, handle)[1]
                for _ in range(message.get_int()):
                    name, _long_name = message.get_string(), message.get_string()
                    yield name, paramiko.SFTPAttributes._from_msg(message)
        except EOFError:
            return
        finally:
            self._request(CMD_CLOSE, handle)

    def real_path(self, path: bytes) -> bytes:
        """Return a path with all links resolved."""
        message = self._request(CMD_REALPATH, path)[1]
        message.get_int()
        found: bytes = message.get_string()
        return found


def connect(address: ShareAddress, settings: ShareSettings) -> SftpShare:
    """Log in at ``sftp://[user@]server[:port]/path``, to a server with a known host key.

    Raises:
        ShareError: the login failed.
    """
    client = paramiko.SSHClient()
    try:
        client.load_system_host_keys(str(settings.sftp_known_hosts.expanduser()))
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        account = settings.account(address)
        client.connect(
            address.host,
            port=address.port or 22,
            username=address.user or account.user,
            password=secret(account.password),
            key_filename=str(account.key.expanduser()) if account.key else None,
            passphrase=secret(settings.sftp_key_passphrase),
            allow_agent=False,
            look_for_keys=False,
            timeout=settings.share_timeout,
            banner_timeout=settings.share_timeout,
            auth_timeout=settings.share_timeout,
        )
        files = _Files.from_transport(client.get_transport())
        files.get_channel().settimeout(settings.share_timeout)
    except Exception as error:
        client.close()
        raise SftpShare.as_share_error(error) from error
    return SftpShare(client, files, os.fsencode("/".join(["", *address.parts])))


class SftpShare:
    """``Share`` over SFTP."""

    def __init__(self, client: paramiko.SSHClient, files: _Files, root: bytes) -> None:
        self._client = client
        self._files = files
        self._root = root

    def list(self, folder: Parts) -> Iterator[ShareEntry]:
        """Yield the files and folders in a folder."""
        for name, status in self._files.entries(self._path(folder) or b"/"):
            parts, mode = (*folder, os.fsdecode(name)), status.st_mode or 0
            if name in (b".", b".."):
                continue
            if S_ISDIR(mode):
                yield ShareEntry(parts, None)
            elif S_ISREG(mode):
                yield ShareEntry(parts, _file_stat(status))

    def stat(self, file: Parts) -> FileStat:
        """Return the stat of a regular file that is not reached through a link."""
        path = self._path(file)
        status = self._files.lstat(path)
        if not S_ISREG(status.st_mode or 0):
            raise ShareFileMissing("There is no such file.")
        # The mapped folder itself may be reached through a link.
        root = self._files.real_path(self._root or b"/").rstrip(b"/")
        if self._files.real_path(path) != root + self._below(file):
            raise ShareFileMissing("A link leads to this file.")
        return _file_stat(status)

    @contextmanager
    def open(self, file: Parts, file_stat: FileStat, start: int) -> Iterator[Stream]:
        """Yield the file's bytes, with many requests in flight."""
        with self._files.open(self._path(file), "rb") as stream:
            if start:
                stream.seek(start)
            else:
                stream.prefetch(file_stat.size, max_concurrent_requests=64)
            yield stream

    @staticmethod
    def as_share_error(error: Exception) -> ShareError:
        """Map an error of paramiko."""
        if isinstance(error, paramiko.SSHException) and "not found in known_hosts" in str(error):
            return ShareError(_UNKNOWN_KEY)
        return share_error_by_type(error, _BY_TYPE)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _path(self, parts: Parts) -> bytes:
        return self._root + self._below(parts)

    @staticmethod
    def _below(parts: Parts) -> bytes:
        return b"".join(b"/" + os.fsencode(part) for part in parts)


def _file_stat(status: paramiko.SFTPAttributes) -> FileStat:
    return FileStat(status.st_size or 0, (status.st_mtime or 0) * 10**9, 0, 0)
