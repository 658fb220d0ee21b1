"""Peculiarities of each protocol: host keys, links, odd file names, pagination, locks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import smbclient
from engines.s3 import RealS3
from engines.sftp import RealSftp
from engines.smb import PASSWORD, USER, RealSmb
from engines.webdav import RealWebdav

from ingestion.errors import NotAFile
from ingestion.sources import open_source
from ingestion.sources.shares import smb
from ingestion.sources.shares.address import read_address
from ingestion.sources.shares.registry import open_share
from ingestion.sources.shares.settings import ShareSettings

LIMIT = 1_000_000


@pytest.mark.engine("sftp")
def test_an_unknown_or_changed_sftp_host_key_is_refused(sftp_server: RealSftp, tmp_path: Path) -> None:
    """Shows that no key is added automatically, and that both cases have their own message."""
    place = sftp_server.place()
    for line, word in (("", "ssh-keyscan"), (_line_with_another_key(sftp_server), "another key")):
        known = tmp_path / "known_hosts"
        known.write_text(line)
        source = place.source(sftp_known_hosts=known)
        assert word in (source.scan().problem or "")
        assert known.read_text() == line
    assert "missing" in (place.source(sftp_known_hosts=tmp_path / "none").scan().problem or "")


@pytest.mark.engine("sftp")
def test_a_refused_sftp_login_names_the_variables(sftp_server: RealSftp) -> None:
    source = sftp_server.place().source(sftp_key=sftp_server.folder / "stranger")
    assert "FOOTNOTE_SFTP_KEY" in (source.scan().problem or "")


@pytest.mark.engine("sftp")
def test_links_on_an_sftp_server_are_not_followed(sftp_server: RealSftp, tmp_path: Path) -> None:
    """Covers a link to a file, and one swapped in for a folder."""
    place, other = sftp_server.place(), sftp_server.place()
    other.put("secret.pdf", b"secret")
    place.put("papers/secret.pdf", b"public")
    (place.folder / "link.pdf").symlink_to(other.folder / "secret.pdf")
    (place.folder / "linked").symlink_to(other.folder)
    source = place.source()
    seen = source.scan().files
    assert set(seen) == {"papers/secret.pdf"}
    other.put("secret.pdf", b"secret")
    (place.folder / "papers").rename(place.folder / "elsewhere")
    (place.folder / "papers").symlink_to(other.folder)
    os.utime(other.folder / "secret.pdf", ns=(0, seen["papers/secret.pdf"].stat.modified_ns))
    with pytest.raises(NotAFile):
        source.copy(seen["papers/secret.pdf"], tmp_path / "copy", LIMIT)
    source.close()


@pytest.mark.engine("sftp")
def test_sftp_file_names_that_are_not_utf8_are_listed(sftp_server: RealSftp, tmp_path: Path) -> None:
    """Shows that they are escaped for display and can be copied."""
    place = sftp_server.place()
    place.put("plain.pdf", b"plain")
    Path(os.fsdecode(os.fsencode(place.folder) + b"/caf\xe9\n.pdf")).write_bytes(b"odd")
    source = place.source()
    seen = source.scan().files
    assert set(seen) == {"plain.pdf", "caf\\xe9\\u{a}.pdf"}
    source.copy(seen["caf\\xe9\\u{a}.pdf"], tmp_path / "copy", LIMIT)
    assert (tmp_path / "copy").read_bytes() == b"odd"
    source.close()


@pytest.mark.engine("smb")
def test_an_smb_file_can_be_replaced_while_we_read_it(smb_server: RealSmb) -> None:
    """Shows that reading opens files with shared access."""
    place = smb_server.place()
    place.put("a.pdf", b"x" * 100_000)
    source, address = place.source(), read_address(place.location)
    share = smb.connect(address, ShareSettings(smb_user=USER, smb_password=PASSWORD))
    name = place.location.rpartition("/")[2]
    account = {"username": USER, "password": PASSWORD, "port": smb_server.port, "connection_cache": {}}
    with share.open(("a.pdf",), share.stat(("a.pdf",)), 0) as stream:
        assert stream.read(10)
        with smbclient.open_file(
            rf"\\127.0.0.1\files\{name}\a.pdf", "wb", share_access="rwd", **account
        ) as other:
            other.write(b"new")
        smbclient.remove(rf"\\127.0.0.1\files\{name}\a.pdf", **account)
    smbclient.reset_connection_cache(connection_cache=account["connection_cache"])
    share.close()
    assert source.scan().files == {}
    source.close()


@pytest.mark.engine("smb")
def test_a_missing_smb_share_is_a_problem(smb_server: RealSmb) -> None:
    """Shows that a mistyped share is distinguished from an empty folder."""
    place = smb_server.place()
    wrong = place.location.replace("/files/", "/fyles/")
    settings = ShareSettings(smb_user=USER, smb_password=PASSWORD, share_timeout=10)
    source = open_share(wrong, settings)
    assert "missing" in (source.scan().problem or "")
    source.close()


@pytest.mark.long
@pytest.mark.engine("s3")
def test_a_paginated_s3_listing_is_read_to_its_end(s3_server: RealS3) -> None:
    """Shows that objects after the first thousand are seen, and folder markers are skipped."""
    place = s3_server.place()
    for number in range(1005):
        place.put(f"{number:04}.pdf", b"x")
    place.put("marker.pdf/", b"")
    place.put("double//slash.pdf", b"x")
    place.put("../up.pdf", b"x")
    place.put("x" * 980 + ".pdf", b"x")
    source = place.source(share_timeout=60)
    seen = source.scan()
    assert seen.problem is None
    assert len(seen.files) == 1006
    assert any("skipped" in remark for remark in seen.remarks)
    source.close()


@pytest.mark.engine("s3")
def test_a_bucket_requires_credentials(
    s3_server: RealS3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Shows that the message names the variables to set."""
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    settings = ShareSettings(aws_endpoint_url=s3_server.url, share_timeout=10)
    assert "AWS_ACCESS_KEY_ID" in (open_share(s3_server.place().location, settings).scan().problem or "")


@pytest.mark.engine("webdav")
def test_a_webdav_folder_that_is_a_file_is_a_problem(webdav_server: RealWebdav) -> None:
    """Shows that it is distinguished from an empty folder."""
    place = webdav_server.place()
    place.put("a.pdf", b"x")
    place.location += "/a.pdf"
    source = place.source()
    assert "missing" in (source.scan().problem or "")
    source.close()


def test_a_local_folder_that_is_a_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"x")
    assert open_source(str(tmp_path / "a.pdf")).scan().problem is not None


def _line_with_another_key(server: RealSftp) -> str:
    stranger = " ".join((server.folder / "stranger.pub").read_text().split()[:2])
    return f"[127.0.0.1]:{server.port} {stranger}\n"
