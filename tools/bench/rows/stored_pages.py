"""Row ``store``: a page on a machine without the PDF, after another machine has drawn it.

Compared to a page that has not been drawn, for which the machine copies the PDF from the store and draws it.
The store is moto's S3 on loopback.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from engines.s3 import RealS3
from harness.waiting import until

from bot.web.page_images import PageImages
from storage.files.blobs import Blobs
from storage.files.object_store import hash_file
from storage.settings import StorageSettings
from storage.stores import open_pdf_process, open_stores
from tools.bench.corpus import pdfs
from tools.bench.figures import Figure
from tools.bench.timing import alternate, percentiles

VIEWS = 20
# Resolution of the first picture of a page.
DPI = 132
ROOM = 1 << 30


async def bench_stored_pages(work: Path, pages: int) -> list[Figure]:
    """Return the figure for a document with ``pages`` pages; every second page is drawn in advance."""
    (file,) = pdfs(1, pages)
    sha256, server = await asyncio.to_thread(hash_file, file), RealS3(work)
    try:
        await asyncio.to_thread(server.start)
        bucket = server.place()

        def machine(name: object) -> Blobs:
            """Return the blobs of a machine with an empty disk and an open connection."""
            blobs = Blobs(work / str(name) / "blobs", store=bucket.store(), cache_bytes=ROOM)
            blobs.exists(sha256)
            return blobs

        async with (
            open_stores(StorageSettings(home=work / "home")) as stores,
            open_pdf_process(stores, readers=1) as pdf,
        ):
            first = await asyncio.to_thread(machine, "first")
            await asyncio.to_thread(first.upload, file, sha256)

            machines = [await asyncio.to_thread(machine, number) for number in range(2 * VIEWS)]

            async def show(page: int, blobs: Blobs) -> None:
                await PageImages(blobs, pdf, ROOM).image(sha256, page, DPI, holder=0)

            async def take(number: int) -> None:
                await show(2 * number + 1, machines[2 * number])

            async def draw(number: int) -> None:
                await show(2 * number + 2, machines[2 * number + 1])

            async def is_sent() -> bool:
                return len(bucket.keys()) == 1 + VIEWS

            for number in range(VIEWS):
                await show(2 * number + 1, first)
            await until(is_sent)
            turns = await alternate(take, draw, VIEWS)
    finally:
        await asyncio.to_thread(server.kill)
    return [
        Figure(
            f"a page that another machine drew, of {file.stat().st_size / 1e6:.0f} MB in a store",
            "",
            percentiles(turns.ours),
            f"the PDF copied and the page drawn {percentiles(turns.other)}",
            f"{turns.ratio:.2f} x",
            None,
        )
    ]
