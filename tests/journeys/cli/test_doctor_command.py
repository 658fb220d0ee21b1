"""``footnote doctor`` on whole installations with real servers, with and without a running ``serve``."""

from __future__ import annotations

import asyncio
import json
import ssl
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from engines.slack import StartSlack, slack_settings
from engines.support.ports import free_port
from engines.weaviate import RealWeaviate
from harness.program import Program

from storage.clock import utc_now

pytestmark = pytest.mark.long


def lines(program: Program, *names: str) -> dict[str, dict[str, Any]]:
    """Return the report by name; of several results with one name the worst."""
    ended = program.run("doctor", "--json", *names)
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    assert found, ended.stderr
    assert ended.returncode == any(one["state"] == "fail" for one in found), ended.stdout
    assert "Traceback" not in ended.stderr
    order = ["ok", "warn", "fail"]
    return {one["name"]: one for one in sorted(found, key=lambda one: order.index(one["state"]))}


async def test_a_running_installation_is_healthy(with_samples: Program) -> None:
    """Covers every check of a serving home, its metrics, and a tenant file lost at runtime."""
    program = with_samples
    elsewhere = f"127.0.0.1:{free_port()}"
    program.environment["FOOTNOTE_METRICS_LISTEN"] = elsewhere
    async with program.serving():
        report = lines(program)
        assert {name: one["text"] for name, one in report.items() if one["state"] == "fail"} == {}
        assert (
            report["serve"]["state"] == report["public-url"]["state"] == report["contents"]["state"] == "ok"
        )
        assert "leads to this installation" in report["public-url"]["text"]
        assert "without network and file access" in report["pdf"]["text"] or report["pdf"]["state"] == "warn"
        await program.ask_console("it", "When do backups run?")
        for place in (program.url, f"http://{elsewhere}"):
            async with aiohttp.ClientSession() as session, session.get(f"{place}/metrics") as response:
                page = await response.text()
            assert 'footnote_questions_total{channel_type="local",outcome="passages"} 1.0' in page
            assert 'footnote_documents{state="present"} 2.0' in page
    for file in (program.home / "index").iterdir():
        file.unlink()
    assert "lacks" in lines(program, "contents")["contents"]["text"]


async def test_slack_and_a_certificate_are_checked(
    with_samples: Program, start_slack: StartSlack, tmp_path: Path
) -> None:
    """Covers the double's reply to the token, and a certificate that expires within days."""
    slack = await start_slack("socket", "")
    program = with_samples
    program.environment |= slack_settings(slack.api_url)
    report = lines(program, "slack", "clock")
    assert report["slack"]["state"] == "ok", report
    key, certificate = make_certificate(days=5)
    (tmp_path / "key.pem").write_bytes(key)
    (tmp_path / "cert.pem").write_bytes(certificate)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    runner = web.AppRunner(web.Application())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        port = site._server.sockets[0].getsockname()[1]  # it is listening
        program.environment["FOOTNOTE_PUBLIC_URL"] = f"https://127.0.0.1:{port}"
        assert "not trusted" in (await in_thread(program, "tls"))["tls"]["text"]
        program.environment["SSL_CERT_FILE"] = str(tmp_path / "cert.pem")
        told = (await in_thread(program, "tls"))["tls"]
        assert (told["state"], "in 4 days" in told["text"]) == ("warn", True)
    finally:
        await runner.cleanup()


async def in_thread(program: Program, *names: str) -> dict[str, dict[str, Any]]:
    """Return the report without blocking servers of this process."""
    return await asyncio.to_thread(lines, program, *names)


def make_certificate(days: int) -> tuple[bytes, bytes]:
    """Return a key and a self-signed certificate for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    now = utc_now()
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    raw = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return raw, certificate.public_bytes(pem)


@pytest.mark.engine("weaviate")
def test_a_weaviate_server_is_checked(program: Program, weaviate: RealWeaviate, sop: Path) -> None:
    """Covers version and nodes of a real server, its publications, and a refused key."""
    program.environment |= weaviate.settings
    assert program.run("ingest", str(sop), "--channel", "it").returncode == 0
    report = lines(program, "index", "contents")
    assert (report["index"]["state"], report["contents"]["state"]) == ("ok", "ok"), report
    program.environment["WEAVIATE_API_KEY"] = "another"
    assert "refuses the key" in lines(program, "index")["index"]["text"]


@pytest.mark.engine("postgres")
def test_a_postgresql_server_is_checked(program: Program, postgres_url: str) -> None:
    """Covers an empty database, version and clock of a migrated one, and a missing one."""
    program.environment["DATABASE_URL"] = postgres_url
    told = lines(program, "sql")["sql"]
    assert (told["state"], "revision none" in told["text"]) == ("fail", True)
    listed = program.run("channels")
    assert (listed.returncode, "There is no channel yet." in listed.stderr) == (0, True)
    report = lines(program, "sql", "clock")
    assert "PostgreSQL" in report["sql"]["text"]
    assert report["clock"] == report["clock"] | {"state": "ok", "text": "in step with the database server's"}
    program.environment["DATABASE_URL"] = f"{postgres_url}-of-nobody"
    assert lines(program, "sql")["sql"]["state"] == "fail"
