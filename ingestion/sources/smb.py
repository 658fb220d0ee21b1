"""SMB through smbprotocol, the client that fsspec uses.

fsspec's own layer asks for every file anew and opens it so that nobody else may write to it.
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

from ingestion.sources.address import Address
from ingestion.sources.port import Look
from ingestion.sources.settings import ShareSettings, secret
from ingestion.sources.share import (
    BUSY,
    FORBIDDEN,
    UNREACHABLE,
    Busy,
    Entry,
    Forbidden,
    Meanings,
    Missing,
    Parts,
    Stream,
    Trouble,
    trouble_by_type,
    wrong_account,
)

ACCOUNT = "FOOTNOTE_SMB_USER and FOOTNOTE_SMB_PASSWORD"
_EXPIRED = "The password of our SMB account has expired: renew it, then set FOOTNOTE_SMB_PASSWORD."
_BY_STATUS: dict[object, Callable[[], Trouble]] = {
    NtStatus.STATUS_LOGON_FAILURE: partial(wrong_account, ACCOUNT),
    NtStatus.STATUS_PASSWORD_EXPIRED: partial(Trouble, _EXPIRED),
    NtStatus.STATUS_BAD_NETWORK_NAME: partial(Trouble, "The server has no such share: is the address right?"),
    NtStatus.STATUS_SHARING_VIOLATION: partial(Busy, BUSY),
    NtStatus.STATUS_DELETE_PENDING: partial(Busy, BUSY),
    NtStatus.STATUS_ACCESS_DENIED: partial(Forbidden, FORBIDDEN),
}
_BY_TYPE: Meanings = (
    ((SMBAuthenticationError,), partial(wrong_account, ACCOUNT)),
    ((SMBConnectionClosed, ValueError), partial(Trouble, UNREACHABLE)),
)
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def connect(address: Address, settings: ShareSettings) -> SmbShare:
    """Open a signed session for ``smb://[user@]server[:port]/share/path``.

    Raises:
        Trouble: that does not work.
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
        raise _trouble(error) from error
    return SmbShare("\\\\" + "\\".join([address.host, *address.parts]), session)


class SmbShare:
    """Implements ``Share`` over SMB 2 and 3."""

    def __init__(self, root: str, session: dict[str, Any]) -> None:
        """A folder by its UNC path, in a session of its own."""
        self._root = root
        self._session = session

    def list(self, folder: Parts) -> Iterator[Entry]:
        """One folder's files and folders; links and other reparse points are none."""
        return self._entries(folder, "*")

    def look(self, file: Parts) -> Look:
        """One file, found by its name in its folder."""
        *folder, name = file
        for entry in self._entries(tuple(folder), name):
            if entry.look is not None and entry.parts == file:
                return entry.look
        raise Missing("There is no such file.")

    @contextmanager
    def open(self, file: Parts, look: Look, start: int) -> Iterator[Stream]:
        """The file's bytes, opened so that others may still write, rename and delete it."""
        with smbclient.open_file(self._path(file), "rb", share_access="rwd", **self._session) as stream:
            stream.seek(start)
            yield stream

    def trouble(self, error: Exception) -> Trouble:
        """What an error of smbprotocol means."""
        return _trouble(error)

    def close(self) -> None:
        """End the session."""
        _hang_up(self._session)

    def _entries(self, folder: Parts, pattern: str) -> Iterator[Entry]:
        with smbclient.scandir(self._path(folder), search_pattern=pattern, **self._session) as found:
            for one in found:
                attributes = one.smb_info.file_attributes
                if attributes & FileAttributes.FILE_ATTRIBUTE_REPARSE_POINT or "\\" in one.smb_info.file_name:
                    continue
                is_folder = bool(attributes & FileAttributes.FILE_ATTRIBUTE_DIRECTORY)
                yield Entry((*folder, one.smb_info.file_name), None if is_folder else _look(one.smb_info))

    def _path(self, parts: Parts) -> str:
        return "\\".join([self._root, *parts])


def _hang_up(session: dict[str, Any]) -> None:
    smbclient.reset_connection_cache(fail_on_error=False, connection_cache=session["connection_cache"])


def _look(info: Any) -> Look:
    return Look(
        info.end_of_file, _nanoseconds(info.last_write_time), _nanoseconds(info.change_time), info.file_id
    )


def _nanoseconds(moment: datetime) -> int:
    since = moment - _EPOCH
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000


def _trouble(error: Exception) -> Trouble:
    status = getattr(error, "ntstatus", getattr(error, "status", None))
    make = _BY_STATUS.get(status)
    return trouble_by_type(error, _BY_TYPE) if make is None else make()
