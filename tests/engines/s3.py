"""s3: moto's server on loopback, which checks signatures; objects are restored after a kill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import boto3
import pytest

from engines.support.shares import HOST, SHARE_SECONDS, ShareServer, new_name, python
from ingestion.sources.base import Source
from ingestion.sources.shares.registry import open_share
from ingestion.sources.shares.settings import ShareSettings
from storage.errors import BlobsUnavailable
from storage.files.object_store import ObjectStore
from storage.settings import AwsSettings

NAME = "s3"
REMEDY = "make test"
BINDS_EVERYWHERE = False
CALLS_OF_SETUP = 3
STORE_KEY = b"of the home"
POLICY = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}'


def missing() -> str | None:
    """Return None: it is in the development packages."""
    return None


def fetch() -> None:
    """Do nothing."""


class RealS3(ShareServer):
    """A server with one account with full access, and a bucket per place."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._buckets: dict[str, dict[str, bytes]] = {}
        self.settings: dict[str, Any] = {}
        self._store: Any = None

    @property
    def url(self) -> str:
        """Endpoint URL."""
        return f"http://{HOST}:{self.port}"

    def command(self) -> Sequence[str]:
        """Return the command of the server in the foreground."""
        return [python(), "-m", "moto.server", "-H", HOST, "-p", str(self.port)]

    def environment(self) -> dict[str, str]:
        """Check signatures from the fourth call on, because three calls create the account."""
        return {"INITIAL_NO_AUTH_ACTION_COUNT": str(CALLS_OF_SETUP)}

    def start(self) -> None:
        """Start it, create the account again, and restore its objects."""
        super().start()
        urlopen(Request(f"{self.url}/moto-api/seed?a=1", method="POST"), timeout=10).close()  # the same keys
        accounts = self._client("iam", "setup", "setup")
        accounts.create_user(UserName="footnote")
        key = accounts.create_access_key(UserName="footnote")["AccessKey"]
        accounts.put_user_policy(UserName="footnote", PolicyName="all", PolicyDocument=POLICY)
        self.settings |= {
            "aws_endpoint_url": self.url,
            "aws_access_key_id": key["AccessKeyId"],
            "aws_secret_access_key": key["SecretAccessKey"],
        }
        self._store = self._client("s3", key["AccessKeyId"], key["SecretAccessKey"])
        for bucket, objects in self._buckets.items():
            self._store.create_bucket(Bucket=bucket)
            for key, data in objects.items():
                self._store.put_object(Bucket=bucket, Key=key, Body=data)

    def place(self) -> Bucket:
        """Return a new bucket with a prefix."""
        name = new_name()
        self._buckets[name] = {}
        self._store.create_bucket(Bucket=name)
        return Bucket(self, name)

    def put(self, bucket: str, key: str, data: bytes) -> None:
        """Store an object."""
        self._buckets[bucket][key] = data
        self._store.put_object(Bucket=bucket, Key=key, Body=data)

    def take(self, bucket: str, key: str) -> bytes:
        """Delete an object and return its content."""
        self._store.delete_object(Bucket=bucket, Key=key)
        return self._buckets[bucket].pop(key)

    def keys(self, bucket: str) -> list[str]:
        """Return the keys of all objects in a bucket."""
        found = self._store.list_objects_v2(Bucket=bucket).get("Contents", ())
        return [one["Key"] for one in found]

    def damage(self, bucket: str, key: str) -> None:
        """Change a byte in the middle of an object."""
        data = bytearray(self._store.get_object(Bucket=bucket, Key=key)["Body"].read())
        data[len(data) // 2] ^= 1
        self._store.put_object(Bucket=bucket, Key=key, Body=bytes(data))

    def drop(self, bucket: str) -> None:
        """Delete a bucket."""
        for key in list(self._buckets[bucket]):
            self.take(bucket, key)
        del self._buckets[bucket]
        self._store.delete_bucket(Bucket=bucket)

    def _client(self, service: str, key: str, secret: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
        )


class Bucket:
    """A place in a bucket, below a prefix."""

    def __init__(self, server: RealS3, bucket: str) -> None:
        self.location = f"s3://{bucket}/team/papers"
        self.bucket = bucket
        self.server = server
        self.pause, self.resume = server.pause, server.resume
        self.kill, self.start = server.kill, server.start

    def source(self, **settings: Any) -> Source:
        """Return a source of it."""
        return open_share(
            self.location,
            ShareSettings(**{"share_timeout": SHARE_SECONDS, **self.server.settings, **settings}),
        )

    @property
    def account(self) -> AwsSettings:
        """Credentials of the bucket."""
        return AwsSettings(**self.server.settings)

    def store(self) -> ObjectStore:
        """Return a blob store in it, tolerant of a slow machine."""
        return ObjectStore(self.location, BlobsUnavailable, "the blob store", self.account, key=STORE_KEY)

    def keys(self) -> list[str]:
        """Return the names of its objects."""
        return [key.removeprefix("team/papers/") for key in self.server.keys(self.bucket)]

    def damage(self, name: str) -> None:
        """Change a byte of an object."""
        self.server.damage(self.bucket, f"team/papers/{name}")

    def put(self, name: str, data: bytes) -> None:
        """Store an object."""
        self.server.put(self.bucket, f"team/papers/{name}", data)

    def remove(self, name: str) -> None:
        """Delete an object."""
        self.server.take(self.bucket, f"team/papers/{name}")

    def rename(self, old: str, new: str) -> None:
        """Copy to a new key and delete the old one, because S3 has no rename."""
        self.put(new, self.server.take(self.bucket, f"team/papers/{old}"))

    def vanish(self) -> None:
        """Delete the bucket."""
        self.server.drop(self.bucket)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealS3]:
    """A server shared by all tests; a test that kills it restarts it."""
    server = RealS3(tmp_path_factory.mktemp("s3"))
    try:
        server.start()
        yield server
    finally:
        server.kill()
