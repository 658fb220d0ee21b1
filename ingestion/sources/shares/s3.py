"""S3 share, also for compatible stores, through s3fs: flat listings, reads pinned to an ETag."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

import s3fs
from botocore import exceptions
from fsspec.asyn import sync

from ingestion.sources.base import FileStat, Parts
from ingestion.sources.shares.address import ShareAddress
from ingestion.sources.shares.remote_source import (
    BUSY,
    SILENT,
    UNREACHABLE,
    ErrorTable,
    ShareEntry,
    ShareError,
    ShareFileBusy,
    ShareForbidden,
    Stream,
    share_error_by_type,
    wrong_account,
)
from ingestion.sources.shares.settings import ShareSettings, secret

ACCOUNT = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_NO_ACCOUNT = f"S3 wants an account: set {ACCOUNT} (or FOOTNOTE_SHARE_ACCOUNTS)."
_NO_RIGHT = f"S3 does not let us read this: check {ACCOUNT}, and its right to list and to read."
_BY_CODE: dict[str, Callable[[], ShareError]] = {
    "InvalidAccessKeyId": partial(wrong_account, ACCOUNT),
    "SignatureDoesNotMatch": partial(wrong_account, ACCOUNT),
    "ExpiredToken": partial(wrong_account, ACCOUNT),
    "InvalidToken": partial(wrong_account, ACCOUNT),
    "NoSuchBucket": partial(ShareError, "There is no such bucket: is its name right?"),
    "PreconditionFailed": partial(ShareFileBusy, BUSY),
    "412": partial(ShareFileBusy, BUSY),
    "InvalidRange": partial(ShareFileBusy, BUSY),
    "416": partial(ShareFileBusy, BUSY),
}
_BY_TYPE: ErrorTable = (
    ((exceptions.NoCredentialsError, exceptions.PartialCredentialsError), partial(ShareError, _NO_ACCOUNT)),
    ((PermissionError,), partial(ShareForbidden, _NO_RIGHT)),
    ((exceptions.ReadTimeoutError, exceptions.ConnectTimeoutError), partial(ShareError, SILENT)),
    ((exceptions.HTTPClientError,), partial(ShareError, UNREACHABLE)),
)


def connect(address: ShareAddress, settings: ShareSettings) -> S3Share:
    """Create a client for ``s3://bucket/prefix``; nothing is sent yet."""
    account = settings.account(address)
    store = s3fs.S3FileSystem(
        key=account.user,
        secret=secret(account.password),
        token=secret(account.token),
        endpoint_url=account.endpoint,
        skip_instance_cache=True,  # one instance per source, dropped after errors
        use_listings_cache=False,
        config_kwargs={
            "connect_timeout": settings.share_timeout,
            "read_timeout": settings.share_timeout,
            "retries": {"max_attempts": 1},
        },
    )
    store.retries = 1  # the next scan is the retry
    return S3Share(store, address.host, "".join(f"{part}/" for part in address.parts))


class S3Share:
    """``Share`` over the S3 API."""

    def __init__(self, store: s3fs.S3FileSystem, bucket: str, prefix: str) -> None:
        """Use the keys that begin with ``prefix``, which is empty or ends in ``/``."""
        self._store = store
        self._bucket = bucket
        self._prefix = prefix

    def list(self, folder: Parts) -> Iterator[ShareEntry]:
        """Yield all objects, page by page, without the keys ending in ``/`` that mark folders."""
        more: dict[str, str] = {}
        while True:
            page = self._call("list_objects_v2", Prefix=self._prefix, **more)
            for found in page.get("Contents", ()):
                key = found["Key"][len(self._prefix) :]
                if key and not key.endswith("/"):
                    file_stat = _file_stat(found["Size"], found["LastModified"], found["ETag"])
                    yield ShareEntry(tuple(key.split("/")), file_stat)
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def stat(self, file: Parts) -> FileStat:
        """Return the stat of an object."""
        head = self._call("head_object", Key=self._key(file))
        return _file_stat(head["ContentLength"], head["LastModified"], head["ETag"])

    @contextmanager
    def open(self, file: Parts, file_stat: FileStat, start: int) -> Iterator[Stream]:
        """Yield the bytes of exactly the object with this stat."""
        found = self._call("get_object", Key=self._key(file), IfMatch=file_stat.tag, Range=f"bytes={start}-")
        with _Body(self._store, found["Body"]) as body:
            yield body

    def as_share_error(self, error: Exception) -> ShareError:
        """Map an error of s3fs or botocore."""
        # S3's own error code: s3fs keeps the original error as the cause of its own.
        cause = error if isinstance(error, exceptions.ClientError) else error.__cause__
        about = cause.response.get("Error", {}) if isinstance(cause, exceptions.ClientError) else {}
        make = _BY_CODE.get(about.get("Code", ""))
        return make() if make else share_error_by_type(error, _BY_TYPE)

    def close(self) -> None:
        """Drop the client, which closes its connections."""
        self._store = None

    def _key(self, file: Parts) -> str:
        return self._prefix + "/".join(file)

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._store.call_s3(method, Bucket=self._bucket, **arguments)
        return found


class _Body:
    """Stream of an object, read in the event loop of fsspec's thread."""

    def __init__(self, store: s3fs.S3FileSystem, body: Any) -> None:
        self._store = store
        self._body = body

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes."""
        block: bytes = sync(self._store.loop, self._body.read, size)
        return block

    def __enter__(self) -> _Body:
        return self

    def __exit__(self, *_: object) -> None:
        self._body.close()


def _file_stat(size: int, modified: datetime, tag: str) -> FileStat:
    """Return a stat in whole seconds: listings may be more precise than the head of an object."""
    return FileStat(size, int(modified.timestamp()) * 10**9, 0, 0, tag)
