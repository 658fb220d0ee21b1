"""Pictures of pages: each is drawn once, whoever waits for it and whoever goes away meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bot.core.ports import PageImage
from bot.web.page_images import PageImages
from storage.errors import DocumentError
from storage.files.blobs import Blobs
from storage.models import Box
from storage.pdf.models import RenderedPage

SHA256 = "f00d" * 16
PICTURE = PageImage(b"a picture", "image/png")
DRAWN = RenderedPage(PICTURE.data, PICTURE.media_type, 100, 100)


class GatedRenderer:
    """Draws when the gate opens; counts how many drawings began and how many went on at once."""

    def __init__(self, failures: int = 0) -> None:
        self.gate = asyncio.Event()
        self.began = asyncio.Event()
        self.drawn = self.busy = self.busiest = 0
        self._failures = failures

    async def render(
        self, path: Path, page: int, dpi: int, clip: Box | None = None, side: int | None = None
    ) -> RenderedPage:
        """The picture, or the failures that come first."""
        self.drawn += 1
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        self.began.set()
        try:
            await self.gate.wait()
        finally:
            self.busy -= 1
        if self.drawn <= self._failures:
            raise DocumentError("this page cannot be drawn")
        return DRAWN


async def test_whoever_stops_waiting_makes_no_second_drawing(tmp_path: Path) -> None:
    """Shows that a closed browser tab does not open the way for the next one beside the first."""
    renderer = GatedRenderer()
    images = PageImages(tmp_path / "images", renderer, 1000, Blobs(tmp_path / "blobs").fetch)

    def ask() -> asyncio.Task[PageImage]:
        return asyncio.create_task(images.image(SHA256, 1, 132, holder=1))

    first = ask()
    await renderer.began.wait()
    leaving = ask()
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving])
    late = ask()
    for _ in range(5):
        await asyncio.sleep(0)
    renderer.gate.set()
    assert await asyncio.gather(first, late) == [PICTURE, PICTURE]
    assert renderer.drawn == 1


async def test_after_a_failure_those_who_waited_try_one_after_the_other(tmp_path: Path) -> None:
    """Shows that a page that failed once is drawn again, never twice at the same time."""
    renderer = GatedRenderer(failures=1)
    renderer.gate.set()
    images = PageImages(tmp_path / "images", renderer, 1000, Blobs(tmp_path / "blobs").fetch)
    asked = [images.image(SHA256, 1, 132, holder=1) for _ in range(4)]
    failed, *others = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(failed, DocumentError)
    assert others == [PICTURE] * 3
    assert (renderer.drawn, renderer.busiest) == (2, 1)


class CountingRenderer:
    """Draws two at a time, each for a moment; remembers which pages in which order."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self._places = asyncio.Semaphore(2)

    async def render(
        self, path: Path, page: int, dpi: int, clip: Box | None = None, side: int | None = None
    ) -> RenderedPage:
        """The picture, later."""
        async with self._places:
            self.order.append(page)
            await asyncio.sleep(0.002)
            return DRAWN


async def test_120_pictures_for_one_let_nobody_else_wait(tmp_path: Path) -> None:
    """Shows that another holder's page is the next one to be drawn, and that two of them share evenly."""
    renderer = CountingRenderer()
    images = PageImages(tmp_path / "images", renderer, 1000, Blobs(tmp_path / "blobs").fetch)

    def ask(page: int, holder: int) -> asyncio.Task[PageImage]:
        return asyncio.create_task(images.image(SHA256, page, 132, holder=holder))

    greedy = [ask(page, 1) for page in range(120)]
    await asyncio.sleep(0.02)
    drawn = len(renderer.order)
    leaving = ask(900, 2)
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(ask(1000, 2), ask(1001, 3))
    assert {1000, 1001} <= set(renderer.order[drawn : drawn + 4])
    await asyncio.gather(*greedy)
    assert sorted(renderer.order)[:120] == list(range(120))
    assert 900 not in renderer.order[drawn + 4 :]
    await asyncio.wait_for(asyncio.gather(*(ask(2000 + n, n) for n in range(6))), 2)


async def test_the_last_of_120_pictures_is_drawn_next_for_whoever_else_wants_it(tmp_path: Path) -> None:
    """Shows that nobody waits for another holder's turn, of the same page; it is drawn once."""
    renderer = CountingRenderer()
    images = PageImages(tmp_path / "images", renderer, 10_000, Blobs(tmp_path / "blobs").fetch)
    greedy = [asyncio.create_task(images.image(SHA256, page, 132, holder=1)) for page in range(120)]
    await asyncio.sleep(0.02)
    drawn = len(renderer.order)
    await images.image(SHA256, 119, 132, holder=2)
    assert 119 in renderer.order[drawn : drawn + 4]
    await asyncio.gather(*greedy)
    assert sorted(renderer.order) == list(range(120))
