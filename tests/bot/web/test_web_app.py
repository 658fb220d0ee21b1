"""The application around viewer and console: health, logs, files, failures and other doors' routes."""

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
from bot.web.readiness import REASONS
from bot.web.security import inline
from bot.web.source_archive import pack_source
from ingestion.settings import IngestionSettings
from storage.settings import StorageSettings

MODELS = ["m.example", "s.example"]


async def test_health_says_alive_and_ready(visit: Visit) -> None:
    """Alive whenever it answers; ready only when every part is, and else by the name of each that is not."""
    ready, busy = await visit(), await visit(not_ready=["index", "slack"])
    assert [(await ready.get(path)).status for path in ("/healthz", "/readyz")] == [200, 200]
    assert [(await busy.get(path)).status for path in ("/healthz", "/readyz")] == [200, 503]
    assert await (await busy.get("/readyz")).json() == {
        "ready": False,
        "not_ready": ["index", "slack"],
        "reasons": {"index": REASONS["index"], "slack": REASONS["slack"]},
    }


async def test_the_log_never_holds_a_token(
    client: TestClient, house: House, caplog: pytest.LogCaptureFixture
) -> None:
    """One line per request: method, route name, status, milliseconds."""
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


async def test_another_doors_failure_is_a_page_that_tells_nothing(
    visit: Visit, caplog: pytest.LogCaptureFixture
) -> None:
    """Routes handed in are served, with the common headers; what they raise is only logged by type."""

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


async def test_static_files_are_named_by_their_content_and_kept_for_ever(client: TestClient) -> None:
    """Every file that the console's page names is served, immutable; other names are nothing."""
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
    """The archive holds this very program, and nothing that the home or the environment holds."""
    response = await client.get("/source.tar.gz")
    with tarfile.open(fileobj=io.BytesIO(await response.read())) as archive:
        names = archive.getnames()
    assert {"footnote/bot/web/app.py", "footnote/bot/core/replies/de.toml"} <= set(names)
    assert "footnote/storage/sql/tables.py" in names
    assert not [name for name in names if name.endswith((".env", ".pyc", ".db", ".toml.bak"))]
    assert all(name.startswith("footnote/") and ".." not in name for name in names)


def test_what_lies_beside_the_source_is_not_offered(tmp_path: Path) -> None:
    """In a checkout git's own list counts, whoever owns it; without git, what a wheel would hold."""
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
    """Names of an archive's files below the program's folder."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {name.removeprefix("footnote/") for name in tar.getnames()}


async def test_a_wrong_method_is_refused(client: TestClient) -> None:
    """A link can only be read."""
    assert (await client.post("/v/abc")).status == 405


@given(name=st.text(min_size=1, max_size=300))
def test_no_file_name_can_break_its_header(name: str) -> None:
    """Whatever a file is called, the header is one line of ASCII with exactly two quoted ends."""
    header = inline(name)
    assert header.isascii()
    assert header.isprintable()
    assert header.count('"') == 2
    assert re.fullmatch(r"inline; filename=\"[^\"\\/]+\"; filename\*=UTF-8''[\w.~%-]+", header)


async def test_a_proxy_that_passes_on_what_it_should_shows_whole_pages(
    client: TestClient, house: House
) -> None:
    """All that a cited page links to lies under the paths that docs/proxy.md lists, each of them used."""
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


async def test_each_page_that_the_apps_entries_link_to_says_what_this_installation_does(visit: Visit) -> None:
    """How long things are kept, who else is sent them, and where links lead; nothing is loaded beside it."""
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
    """Each once; what is configured and not in use is not."""
    settings = Settings(StorageSettings(), BotSettings(**chosen), IngestionSettings())
    assert settings.model_hosts == hosts


def test_an_embeddings_endpoint_is_named() -> None:
    """It is sent all passages."""
    stored = StorageSettings(embed_model="e", embed_base_url="https://e.example/v1")
    assert Settings(stored, BotSettings(), IngestionSettings()).model_hosts == ["e.example"]


def test_who_describes_figures_is_named() -> None:
    """It is sent pictures of all figures."""
    read = IngestionSettings(vision_url="https://v.example/v1")
    assert Settings(StorageSettings(), BotSettings(), read).model_hosts == ["v.example"]
