"""Page images: each is rendered once, however many clients wait for it or disconnect."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from harness.waiting import PATIENCE, until

from bot.web.page_images import PageImages
from bot.web.viewer.fair_semaphore import FairSemaphore
from storage.errors import BlobsUnavailable, DocumentError
from storage.files.blobs import Blobs
from storage.files.object_store import ObjectStore
from storage.models import Box, PageImage
from storage.pdf.models import RenderedPage

SHA256 = "f00d" * 16
PICTURE = PageImage(b"\x89PNG a page", "image/png")
DRAWN = RenderedPage(PICTURE.data, PICTURE.media_type, 100, 100)


class GatedRenderer:
    """Renders once the gate opens; counts renderings and the maximum at once."""

    def __init__(self, failures: int = 0) -> None:
        self.gate = asyncio.Event()
        self.began = asyncio.Event()
        self.drawn = self.busy = self.busiest = 0
        self._failures = failures

    async def render(
        self, path: Path, page: int, dpi: int, clip: Box | None = None, side: int | None = None
    ) -> RenderedPage:
        """Return the image, after the given number of failures."""
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


async def test_a_cancelled_request_causes_no_second_rendering(tmp_path: Path) -> None:
    """Shows that a closed browser tab does not cause a second rendering next to the first."""
    renderer = GatedRenderer()
    images = PageImages(Blobs(tmp_path / "blobs"), renderer, 1000)

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


async def test_waiting_requests_retry_one_by_one_after_a_failure(tmp_path: Path) -> None:
    """Shows that a failed page is rendered again, never twice at the same time."""
    renderer = GatedRenderer(failures=1)
    renderer.gate.set()
    images = PageImages(Blobs(tmp_path / "blobs"), renderer, 1000)
    asked = [images.image(SHA256, 1, 132, holder=1) for _ in range(4)]
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(one) for one in found if one != PICTURE] == [DocumentError]
    assert (renderer.drawn, renderer.busiest) == (2, 1)


async def test_only_one_of_several_machines_renders(tmp_path: Path) -> None:
    """Shows that a machine without the PDF loads the image from the object store, and else renders it."""
    store = ObjectStore(f"file://{tmp_path / 'store'}", BlobsUnavailable, "the blob store", key=b"ours")
    first, second = (Blobs(tmp_path / name / "blobs", store=store) for name in ("one", "two"))
    temporary = first.new_temporary()
    temporary.write_bytes(b"%PDF-1.7")
    sha256 = hashlib.sha256(b"%PDF-1.7").hexdigest()
    first.adopt(temporary, sha256)
    renderers = [GatedRenderer(), GatedRenderer()]
    one, two = (PageImages(*each, 1000) for each in zip((first, second), renderers, strict=True))
    for renderer in renderers:
        renderer.gate.set()
    assert await one.image(sha256, 1, 132, holder=1) == PICTURE
    await until(lambda: is_sent(second, f"{sha256}-1-132"))
    assert await two.image(sha256, 1, 132, holder=1) == PICTURE
    assert [renderer.drawn for renderer in renderers] == [1, 0]
    assert not second.path(sha256).exists()
    assert await two.image(sha256, 2, 132, holder=1) == PICTURE
    assert renderers[1].drawn == 1


async def is_sent(blobs: Blobs, name: str) -> bool:
    """True if the store has an image."""
    return blobs.images.count([name[:64]]) == 1


class OrderedRenderer:
    """Records the order in which pages were begun; each is rendered once the gate opens."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self.gate = asyncio.Event()

    async def render(
        self, path: Path, page: int, dpi: int, clip: Box | None = None, side: int | None = None
    ) -> RenderedPage:
        """Return the image later."""
        self.order.append(page)
        await self.gate.wait()
        return DRAWN


@pytest.mark.parametrize("wanted", [1000, 119], ids=["another page", "the last of them"])
async def test_120_images_for_one_holder_do_not_delay_another(tmp_path: Path, wanted: int) -> None:
    """Shows that another holder's page is begun next to the first one's, and each is rendered once."""
    renderer = OrderedRenderer()
    images = PageImages(Blobs(tmp_path / "blobs"), renderer, 10_000)

    def ask(page: int, holder: int) -> asyncio.Task[PageImage]:
        return asyncio.create_task(images.image(SHA256, page, 132, holder=holder))

    greedy = [ask(page, 1) for page in range(120)]
    await until(lambda: is_begun(renderer, 1))
    leaving = ask(900, 2)
    await asyncio.sleep(0)
    leaving.cancel()
    other = ask(wanted, 3)
    await until(lambda: is_begun(renderer, 2))
    assert renderer.order[1] == wanted
    renderer.gate.set()
    await asyncio.gather(other, *greedy)
    assert sorted(renderer.order) == sorted({*range(120), wanted})


async def is_begun(renderer: OrderedRenderer, pages: int) -> bool:
    """True if at least ``pages`` were begun."""
    return len(renderer.order) >= pages


async def test_turns_are_round_robin_by_holder() -> None:
    """Shows round-robin order: one of each holder, skipping those that no client waits for."""
    turns, order = FairSemaphore(2), []

    async def take(name: str, holder: int) -> None:
        async with turns.slot(holder):
            order.append(name)
            await asyncio.sleep(0.001)

    first = [asyncio.create_task(take(f"a{number}", 1)) for number in range(9)]
    await asyncio.sleep(0)
    leaving = asyncio.create_task(take("gone", 2))
    others = [asyncio.create_task(take(name, holder)) for name, holder in (("b", 2), ("c", 3), ("b2", 2))]
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(*first, *others)
    assert order[0] == "a0"
    assert {"b", "c"} <= set(order[:5])
    assert "b2" in order[:7]
    await asyncio.wait_for(asyncio.gather(*(take("end", holder) for holder in range(6))), PATIENCE)
