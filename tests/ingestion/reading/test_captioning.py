"""Figure descriptions by a vision endpoint; a failure costs only the description."""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fakes.term_embedder import TermEmbedder
from harness.clocks import advance_clocks
from harness.ingestion_home import Home
from PIL import Image
from samples.illustrated import illustrated_pdf

from ingestion.reading.captioning import MAX_FAILURES, REST_SECONDS, FigureDescriber, VisionEndpoint
from ingestion.reading.generations import generations_of
from ingestion.settings import IngestionSettings
from storage.errors import NoPages
from storage.models import Box, Figure, FigureKind, Rung
from storage.pdf.models import RenderedPage

FIGURE = Figure(1, Box(0, 0, 1, 1), FigureKind.UNKNOWN, False, 0, (), "Figure 1", "", "")


@dataclass
class Eye:
    """A fake vision endpoint that answers with ``status``."""

    url: str = ""
    status: int = 200
    said: object = "Zinnober  bars that\nfall."
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def look(self, request: web.Request) -> web.Response:
        """Answer one image."""
        self.asked.append({**await request.json(), "key": request.headers["Authorization"]})
        if not isinstance(self.said, str):
            return web.json_response(self.said, status=self.status)
        message = {"role": "assistant", "content": self.said}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        return web.json_response(body, status=self.status)


@asynccontextmanager
async def seeing() -> AsyncIterator[Eye]:
    """Yield the endpoint on loopback."""
    eye, app = Eye(), web.Application(client_max_size=2**24)
    app.router.add_post("/v1/chat/completions", eye.look)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    eye.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield eye
    finally:
        await runner.cleanup()


@pytest.mark.long
async def test_figures_are_described_from_their_crops(home: Home, tmp_path: Path) -> None:
    """Crop and caption are sent; the description is searchable and never quoted."""
    home.embedder = TermEmbedder("terms")
    home.drop("green/report.pdf", illustrated_pdf(tmp_path).read_bytes())
    async with seeing() as eye:
        vision, calls = VisionEndpoint(eye.url, "eye-1", "secret"), list[bool]()
        serving = await home.serve(layout=True, ocr=False, vision=vision)
        serving.watch_vision(calls.append)
        live = await home.until_found("green", "Zinnober", "report.pdf", Rung.FULL)
    figures = await home.files.figures(live.reading_id)
    assert {one.description for one in figures} == {"Zinnober bars that fall."}
    assert not any("Zinnober" in chunk.text for chunk in await home.files.chunks(live.reading_id))
    assert len(eye.asked) == len(figures) == 4
    assert calls == [True] * 4
    assert {(one["model"], one["key"]) for one in eye.asked} == {("eye-1", "Bearer secret")}
    words, picture = eye.asked[0]["messages"][0]["content"]
    assert words["text"].endswith("Caption: Figure 1. Emissions of carbon dioxide by year")
    data = base64.b64decode(picture["image_url"]["url"].partition("base64,")[2])
    width, height = Image.open(io.BytesIO(data)).size
    box = figures[0].box
    assert width / height == pytest.approx((box.x1 - box.x0) * 595 / ((box.y1 - box.y0) * 842), rel=0.02)


@pytest.mark.parametrize(
    ("status", "said"), [(500, {"error": {}}), (401, {"error": {}}), (200, {}), (200, "")]
)
async def test_a_failing_endpoint_yields_no_description(status: int, said: object) -> None:
    """Shows that no error is raised, whatever it answers, and that the call is reported as failed."""
    async with seeing() as eye:
        eye.status, eye.said = status, said
        picture = RenderedPage(b"x", "image/png", 1, 1)
        endpoint, calls = VisionEndpoint(eye.url, "m", None), list[bool]()
        endpoint.on_call = calls.append
        assert not await endpoint.describe(picture, "")
    assert await endpoint.describe(picture, "") is None
    assert calls == [False, False]


class Painter:
    """Renders a dot for any page but the second."""

    async def render(self, path: Path, page: int, dpi: int, clip: Box | None = None) -> RenderedPage:
        """Return a dot, or raise for page 2."""
        if page == 2:
            raise NoPages("page 2 is damaged and cannot be drawn")
        return RenderedPage(b"x", "image/png", 1, 1)


class Moody:
    """Returns prepared descriptions in turn."""

    def __init__(self, *said: str | None) -> None:
        self.said = list(said)

    async def describe(self, picture: RenderedPage, caption: str) -> str | None:
        """Return the next description."""
        return self.said.pop(0)


async def described(home: Home, model: Moody, figures: Sequence[Figure]) -> list[str]:
    async def at_once() -> None:
        pass

    found = await FigureDescriber(home.blobs, Painter(), model).describe("ab" * 32, figures, at_once)
    return [one.description for one in found]


async def test_failed_figures_have_no_description(
    home: Home,
) -> None:
    """Existing descriptions are kept, and the circuit breaker opens after MAX_FAILURES."""
    figures = [FIGURE, replace(FIGURE, page=2), replace(FIGURE, description="Known."), FIGURE]
    assert await described(home, Moody("One.", "Two."), figures) == ["One.", "", "Known.", "Two."]
    away = Moody(*[None] * MAX_FAILURES)
    assert await described(home, away, [FIGURE] * 9) == [""] * 9
    assert away.said == []


async def test_an_unavailable_model_is_not_called_for_later_documents(home: Home) -> None:
    """Shows that it is called again only after REST_SECONDS."""

    async def at_once() -> None:
        pass

    model = Moody(*[None] * MAX_FAILURES, "Back.")
    describer = FigureDescriber(home.blobs, Painter(), model)
    await describer.describe("ab" * 32, [FIGURE] * 9, at_once)
    assert (await describer.describe("cd" * 32, [FIGURE], at_once))[0].description == ""
    with advance_clocks(timedelta(seconds=REST_SECONDS)):
        assert (await describer.describe("cd" * 32, [FIGURE], at_once))[0].description == "Back."


def test_another_vision_model_is_another_full_generation() -> None:
    """The generation of the full rung includes the model, the quick one's does not."""
    embedder = TermEmbedder("terms")
    made = [
        generations_of(IngestionSettings(vision_url="http://x/v1", vision_model=model), embedder)
        for model in ("one", "two")
    ]
    bare = generations_of(IngestionSettings(), embedder)
    cuts = {one.cut for one in (*made, bare)}
    assert len(cuts) == 3
    assert not any(one != other and one.startswith(other) for one in cuts for other in cuts)
    assert len({one.quick for one in (*made, bare)}) == 1
