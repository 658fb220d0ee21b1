"""Share URLs: normalization, and messages for invalid ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness.tables import for_each

from ingestion.sources import open_source
from ingestion.sources.shares.address import read_address
from ingestion.sources.shares.registry import open_share
from ingestion.sources.shares.settings import ShareAccount, ShareSettings
from storage.errors import SettingsError


@for_each(
    ("url", "location"),
    [
        ("s3://bucket", "s3://bucket"),
        ("S3://bucket/a b/ü/", "s3://bucket/a b/ü"),
        ("sftp://reader@nas.example.com:2222/srv/papers", "sftp://reader@nas.example.com:2222/srv/papers"),
        ("smb://nas/share/hr", "smb://nas/share/hr"),
        ("smb://büro_1/share", "smb://büro_1/share"),
        ("sftp://[::1]:2222/srv", "sftp://[::1]:2222/srv"),
        ("webdavs://cloud.example.com/remote.php/dav/files/reader", None),
    ],
)
def test_a_url_is_normalized(url: str, location: str | None) -> None:
    """Two spellings are one folder; no connection is made."""
    source = open_share(url, ShareSettings())
    assert source.location == (location or url)
    assert source.is_remote
    source.close()


@for_each(
    "url",
    [
        "sftp://reader:hunter2@nas/srv",
        "s3://AKIAX:hunter2@bucket/prefix",
        "smb://DOMAIN;reader:hunter2@nas/share",
        "webdavs://reader:hun/ter2@cloud/dav",
        "webdavs://cloud/dav?token=hunter2",
        "webdavs://cloud/dav#hunter2",
        "abfs://container@account.example.com/x?sig=hunter2",
    ],
)
def test_a_secret_in_a_url_is_refused_and_not_quoted(url: str) -> None:
    """Shows that credentials in the folder map reach no log."""
    with pytest.raises(SettingsError) as refusal:
        open_source(url)
    for part in ("hunter2", "hun", "ter2", "AKIAX", "sig="):
        assert part not in str(refusal.value)
    assert "environment" in str(refusal.value)


@for_each(
    ("url", "word"),
    [
        ("file:///etc", "path"),
        ("memory://x", "unknown protocol"),
        ("simplecache::s3://bucket/x", "malformed"),
        ("zip://x/y", "unknown protocol"),
        ("https://example.com/papers", "unknown protocol"),
        ("nonsense://host/x", "unknown protocol"),
        ("sftp://", "no server"),
        ("sftp://host:notaport/x", "no server"),
        ("sftp://host/a/../b", "plain path"),
        ("s3://bucket//double", "plain path"),
        ("smb://nas", "no share"),
        ("sftp://ho\x00st/x", "malformed"),
        ("gs://bucket/x", "further package"),
        ("webdavs://a..example/x", "server that cannot exist"),
        (f"smb://{'ü' * 64}/share", "server that cannot exist"),
        ("sftp://xn--ü.example/x", "server that cannot exist"),
        ("webdavs://xn--a.example/x", "server that cannot exist"),
        ("sftp://\N{ACCOUNT OF}.example/x", "no server"),
        ("s3://büro/x", "no bucket"),
    ],
)
def test_an_invalid_location_is_refused_with_advice(url: str, word: str) -> None:
    with pytest.raises(SettingsError, match=word):
        open_source(url)


def test_a_password_is_never_sent_unencrypted() -> None:
    """Shows that webdav:// with an account is accepted for this machine only."""
    settings = ShareSettings(webdav_user="reader", webdav_password="hunter2")
    with pytest.raises(SettingsError, match="webdavs"):
        open_share("webdav://cloud.example.com/dav", settings)
    open_share("webdav://127.0.0.1:8080/dav", settings).close()
    open_share("webdav://cloud.example.com/dav", ShareSettings()).close()


def test_a_server_with_its_own_account_uses_only_that() -> None:
    """Shows that servers of one protocol are distinguished by host and port."""
    own: dict[str, Any] = {"nas:2222": ShareAccount(user="other", password="else")}
    settings = ShareSettings(sftp_user="reader", sftp_password="hunter2", share_accounts=own)
    assert settings.account(read_address("sftp://nas:2222/x")).user == "other"
    assert settings.account(read_address("sftp://nas/x")).user == "reader"
    assert settings.account(read_address("smb://nas/x/y")).user is None


def test_accounts_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Covers the syntax; the repr of the settings hides secrets."""
    monkeypatch.setenv("FOOTNOTE_SHARE_ACCOUNTS", '{"nas": {"user": "reader", "password": "hunter2"}}')
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    settings = ShareSettings()
    assert settings.account(read_address("smb://nas/x")).user == "reader"
    assert "hunter2" not in repr(settings)


def test_a_path_is_a_local_folder(tmp_path: Path) -> None:
    """Anything but a URL is a path, existing or not."""
    source = open_source(str(tmp_path / "not there yet"))
    assert not source.is_remote
    assert "missing" in (source.scan().problem or "")
