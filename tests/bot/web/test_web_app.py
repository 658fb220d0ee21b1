"""The web application: health, logs, static files, errors and routes of other adapters."""

from __future__ import annotations

import io
import logging
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from urllib.parse import urljoin

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient
from fakes.web_house import House, Visit, make_pdf
from harness.tables import for_each
from hypothesis import given
from hypothesis import strategies as st
from sources import ROOT

from bot.settings import BotSettings, Settings
from bot.web.readiness import DEFAULT_REASONS
from bot.web.security import inline_disposition
from bot.web.source_archive import pack_source
from ingestion.settings import IngestionSettings
from storage.settings import StorageSettings

MODELS = ["m.example", "s.example"]


async def test_health_and_readiness_endpoints(visit: Visit) -> None:
    """Alive whenever it responds; ready if every part is, else with the names of those that are not."""
    ready, busy = await visit(), await visit(not_ready=["index", "slack"])
    assert [(await ready.get(path)).status for path in ("/healthz", "/readyz")] == [200, 200]
    assert [(await busy.get(path)).status for path in ("/healthz", "/readyz")] == [200, 503]
    assert await (await busy.get("/readyz")).json() == {
        "ready": False,
        "not_ready": ["index", "slack"],
        "reasons": {"index": DEFAULT_REASONS["index"], "slack": "Slack's socket is not connected"},
    }


async def test_the_log_never_contains_a_token(
    client: TestClient, house: House, caplog: pytest.LogCaptureFixture
) -> None:
    """A line per request: method, route name, status, milliseconds."""
    caplog.set_level(logging.DEBUG)
    channel = await house.channel("alpha")
    shelved = await house.shelve(channel, "a.pdf", make_pdf([["text"]]))
    citation = await house.cite(channel, shelved, 1, "text")
    path = house.links.viewer_path(house.links.page_url(channel, citation))
    for suffix in ("", "/file.pdf", "/p/1@1x", "/9"):
        await client.get(path + suffix)
    await client.get(path[:-1])
    lines = [record.getMessage() for record in caplog.records if record.name == "bot.web.middleware"]
    assert [re.sub(r"\d+ ms", "N ms", line) for line in lines] == [
        "GET viewer 200 N ms",
        "GET viewer_file 200 N ms",
        "GET viewer_image 200 N ms",
        "GET viewer_page 404 N ms",
        "GET viewer 404 N ms",
    ]
    assert path.rpartition("/")[2][:20] not in caplog.text


async def test_an_error_of_another_adapter_reveals_nothing(
    visit: Visit, caplog: pytest.LogCaptureFixture
) -> None:
    """Additional routes get the common headers; their exceptions are logged by type only."""

    secret = "".join(["CAN", "ARY"])

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def fail(request: web.Request) -> web.Response:
        raise RuntimeError(secret)

    client = await visit(extra_routes=[web.post("/slack", answer), web.get("/teams", fail, name="teams")])
    response = await client.post("/slack")
    assert (response.status, response.headers["X-Content-Type-Options"]) == (200, "nosniff")
    failed = await client.get("/teams")
    assert failed.status == 500
    assert secret not in await failed.text() + caplog.text
    assert "GET teams failed: RuntimeError" in caplog.text


async def test_static_files_are_named_by_content_and_immutable(client: TestClient) -> None:
    """Every file that the console's page names is served as immutable; other names are not found."""
    html = await (await client.get("/")).text()
    names = re.findall(r'\./(static/[\w.]+)"', html)
    assert len(names) == 5
    for name in names:
        response = await client.get(f"/{name}")
        assert response.status == 200
        assert "immutable" in response.headers["Cache-Control"]
    for name in ("base.css", "..%2fapp.py", "console.000000000000.js"):
        assert (await client.get(f"/static/{name}")).status == 404


async def test_the_running_source_is_offered(client: TestClient) -> None:
    """The archive contains this program, and nothing from the home or the environment."""
    response = await client.get("/source.tar.gz")
    with tarfile.open(fileobj=io.BytesIO(await response.read())) as archive:
        names = archive.getnames()
    assert {"footnote/bot/web/app.py", "footnote/bot/core/replies/de.toml"} <= set(names)
    assert "footnote/storage/sql/tables.py" in names
    assert not [name for name in names if name.endswith((".env", ".pyc", ".db", ".toml.bak"))]
    assert all(name.startswith("footnote/") and ".." not in name for name in names)


def test_untracked_files_are_not_in_the_source_archive(tmp_path: Path) -> None:
    """A checkout uses git's file list, whatever its owner; without git, the files of a wheel."""
    for name in ("bot/app.py", "bot/web/page.html", "deploy/run.sh", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("tracked")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    for name in ("deploy/my-secrets.txt", "bot/notes.txt", "requirements-mine.txt", ".env"):
        (tmp_path / name).write_text("CANARY")
    assert names_in(pack_source(tmp_path)) == {
        "bot/app.py",
        "bot/web/page.html",
        "deploy/run.sh",
        "pyproject.toml",
    }
    shutil.rmtree(tmp_path / ".git")
    assert names_in(pack_source(tmp_path)) == {"bot/app.py", "bot/web/page.html", "pyproject.toml"}


def names_in(archive: bytes) -> set[str]:
    """Return the names of an archive's files below the program's folder."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {name.removeprefix("footnote/") for name in tar.getnames()}


async def test_a_wrong_method_is_refused(client: TestClient) -> None:
    """Links are read-only."""
    assert (await client.post("/v/abc")).status == 405


@given(name=st.text(min_size=1, max_size=300))
def test_no_file_name_can_break_its_header(name: str) -> None:
    """For any file name the header is one line of ASCII with one quoted string."""
    header = inline_disposition(name)
    assert header.isascii()
    assert header.isprintable()
    assert header.count('"') == 2
    assert re.fullmatch(r"inline; filename=\"[^\"\\/]+\"; filename\*=UTF-8''[\w.~%-]+", header)


async def test_pages_need_only_the_documented_proxy_paths(client: TestClient, house: House) -> None:
    """All links of a cited page are under the paths that docs/proxy.md lists, each of which is used."""
    listed = re.findall(
        r"^\| `(/\S+)` .*\| (?:always|unless .*) \|$", (ROOT / "docs/proxy.md").read_text(), re.M
    )
    channel = await house.channel("alpha")
    shelved = await house.shelve(channel, "a.pdf", make_pdf([["one"], ["two"]]))
    path = house.links.viewer_path(
        house.links.page_url(channel, await house.cite(channel, shelved, 1, "one"))
    )
    page = await (await client.get(path)).text()
    linked = {urljoin(path, link) for link in re.findall(r'(?:href|src)="([^"#]+)"', page)}
    assert {next((known for known in listed if link.startswith(known)), link) for link in linked} == set(
        listed
    )


async def test_about_and_privacy_pages_describe_this_installation(visit: Visit) -> None:
    """Retention times, recipients of text, and link targets; no other resource is loaded."""
    client = await visit(link_days=1, console=False)
    for path, said in [
        ("/about", "answers questions from PDFs"),
        ("/privacy", "are sent to models.example"),
        ("/privacy", "their links: 30 days"),
        ("/privacy", "same answer, for 1 day."),
        ("/terms", "without any warranty"),
    ]:
        shown = await client.get(path)
        assert (shown.status, said in await shown.text()) == (200, True), (path, said)
        assert "default-src 'none'" in shown.headers["Content-Security-Policy"]


@for_each(
    ("chosen", "hosts"),
    [
        ({}, []),
        ({"openai_api_key": "k"}, ["api.openai.com"]),
        ({"openai_base_url": "http://m.example:1/v1", "second_model_url": "https://s.example"}, MODELS),
        ({"reranker": "endpoint", "rerank_url": "https://r.example/x", "rerank_model": "m"}, ["r.example"]),
        ({"rerank_url": "https://r.example/x"}, []),
    ],
)
def test_every_host_that_is_sent_text_is_named(chosen: dict[str, str], hosts: list[str]) -> None:
    """Each host once; services that are configured but not in use are left out."""
    settings = Settings(StorageSettings(), BotSettings(**chosen), IngestionSettings())
    assert settings.model_hosts == hosts


def test_an_embeddings_endpoint_is_named() -> None:
    """All passages are sent to it."""
    stored = StorageSettings(embed_model="e", embed_base_url="https://e.example/v1")
    assert Settings(stored, BotSettings(), IngestionSettings()).model_hosts == ["e.example"]


def test_a_vision_endpoint_is_named() -> None:
    """Images of all figures are sent to it."""
    read = IngestionSettings(vision_url="https://v.example/v1")
    assert Settings(StorageSettings(), BotSettings(), read).model_hosts == ["v.example"]
