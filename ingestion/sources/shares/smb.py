"""SMB share through smbprotocol, the client that fsspec uses.

fsspec's own layer sends a request per listed file, and opens files so that nobody else can write to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

import smbclient
from smbprotocol.exceptions import NtStatus, SMBAuthenticationError, SMBConnectionClosed
from smbprotocol.file_info import FileAttributes

from ingestion.sources.base import FileStat, Parts
from ingestion.sources.shares.address import ShareAddress
from ingestion.sources.shares.remote_source import (
    BUSY,
    FORBIDDEN,
    UNREACHABLE,
    ErrorTable,
    ShareEntry,
    ShareError,
    ShareFileBusy,
    ShareFileMissing,
    ShareForbidden,
    Stream,
    share_error_by_type,
    wrong_account,
)
from ingestion.sources.shares.settings import ShareSettings, secret

ACCOUNT = "FOOTNOTE_SMB_USER and FOOTNOTE_SMB_PASSWORD"
_EXPIRED = "The password of our SMB account has expired: renew it, then set FOOTNOTE_SMB_PASSWORD."
_BY_STATUS: dict[object, Callable[[], ShareError]] = {
    NtStatus.STATUS_LOGON_FAILURE: partial(wrong_account, ACCOUNT),
    NtStatus.STATUS_PASSWORD_EXPIRED: partial(ShareError, _EXPIRED),
    NtStatus.STATUS_BAD_NETWORK_NAME: partial(
        ShareError, "The server has no such share: is the address right?"
    ),
    NtStatus.STATUS_SHARING_VIOLATION: partial(ShareFileBusy, BUSY),
    NtStatus.STATUS_DELETE_PENDING: partial(ShareFileBusy, BUSY),
    NtStatus.STATUS_ACCESS_DENIED: partial(ShareForbidden, FORBIDDEN),
}
_BY_TYPE: ErrorTable = (
    ((SMBAuthenticationError,), partial(wrong_account, ACCOUNT)),
    ((SMBConnectionClosed, ValueError), partial(ShareError, UNREACHABLE)),
)
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def connect(address: ShareAddress, settings: ShareSettings) -> SmbShare:
    """Open a signed session for ``smb://[user@]server[:port]/share/path``.

    Raises:
        ShareError: the session cannot be opened.
    """
    account = settings.account(address)
    session: dict[str, Any] = {"port": address.port or 445, "connection_cache": {}}
    try:
        smbclient.register_session(
            address.host,
            username=address.user or account.user,
            password=secret(account.password),
            connection_timeout=int(settings.share_timeout),
            **session,
        )
    except Exception as error:
        _hang_up(session)
        raise SmbShare.as_share_error(error) from error
    return SmbShare("\\\\" + "\\".join([address.host, *address.parts]), session)


class SmbShare:
    """``Share`` over SMB 2 and 3."""

    def __init__(self, root: str, session: dict[str, Any]) -> None:
        """Use the folder at the UNC path ``root``, in its own session."""
        self._root = root
        self._session = session

    def list(self, folder: Parts) -> Iterator[ShareEntry]:
        """Yield the files and folders in a folder, without links and other reparse points."""
        return self._entries(folder, "*")

    def stat(self, file: Parts) -> FileStat:
        """Return the stat of a file, found by its name in its folder."""
        *folder, name = file
        for entry in self._entries(tuple(folder), name):
            if entry.stat is not None and entry.parts == file:
                return entry.stat
        raise ShareFileMissing("There is no such file.")

    @contextmanager
    def open(self, file: Parts, file_stat: FileStat, start: int) -> Iterator[Stream]:
        """Yield the file's bytes, opened so that others may still write, rename and delete it."""
        with smbclient.open_file(self._path(file), "rb", share_access="rwd", **self._session) as stream:
            stream.seek(start)
            yield stream

    @staticmethod
    def as_share_error(error: Exception) -> ShareError:
        """Map an error of smbprotocol."""
        make = _BY_STATUS.get(getattr(error, "ntstatus", getattr(error, "status", None)))
        return make() if make else share_error_by_type(error, _BY_TYPE)

    def close(self) -> None:
        """End the session."""
        _hang_up(self._session)

    def _entries(self, folder: Parts, pattern: str) -> Iterator[ShareEntry]:
        with smbclient.scandir(self._path(folder), search_pattern=pattern, **self._session) as found:
            for one in found:
                attributes = one.smb_info.file_attributes
                if attributes & FileAttributes.FILE_ATTRIBUTE_REPARSE_POINT or "\\" in one.smb_info.file_name:
                    continue
                is_folder = bool(attributes & FileAttributes.FILE_ATTRIBUTE_DIRECTORY)
                yield ShareEntry(
                    (*folder, one.smb_info.file_name), None if is_folder else _file_stat(one.smb_info)
                )

    def _path(self, parts: Parts) -> str:
        return "\\".join([self._root, *parts])


def _hang_up(session: dict[str, Any]) -> None:
    smbclient.reset_connection_cache(fail_on_error=False, connection_cache=session["connection_cache"])


def _file_stat(info: Any) -> FileStat:
    return FileStat(
        info.end_of_file, _nanoseconds(info.last_write_time), _nanoseconds(info.change_time), info.file_id
    )


def _nanoseconds(moment: datetime) -> int:
    since = moment - _EPOCH
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000
