"""Images of figures: the crop behind a link, refused links, and the cost of a hostile page."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import timedelta

import pytest
from aiohttp.test_utils import TestClient
from fakes.web_house import House, Shelved, make_form_bomb, make_pdf
from harness.lasting_pool import LastingPdf
from sqlalchemy import update
from sqlmodel import col

from storage.models import Box, Channel, CitationRecord, CitedPlace
from storage.settings import StorageSettings
from storage.sql.tables import DocumentRow

PAGES = [["Backup policy"], ["Schedule", "Figure 1. Backups by day"]]
BOX = Box(0.1, 0.05, 0.6, 0.15)


@dataclass(frozen=True, slots=True)
class ShownFigure:
    """A figure of an answer, with the paths of its image and its page."""

    channel: Channel
    shelved: Shelved
    citation: CitationRecord
    path: str
    page: str


@pytest.fixture
async def figure(house: House) -> ShownFigure:
    """Return a figure of page 2."""
    channel = await house.channel("alpha")
    shelved = await house.shelve(channel, "it/Backup.pdf", make_pdf(PAGES), "Backups")
    return await shown(
        house, channel, CitedPlace(shelved.version, 2, "Figure 1. Backups by day", (BOX,)), shelved
    )


async def shown(house: House, channel: Channel, what: CitedPlace, shelved: Shelved) -> ShownFigure:
    """Store a shown place and return it with its links."""
    citation = await house.keep(channel, what)
    links = house.links
    picture = links.figure_path(links.figure_url(channel, citation))
    return ShownFigure(
        channel, shelved, citation, picture, links.viewer_path(links.page_url(channel, citation))
    )


@pytest.mark.parametrize(("box", "pixels"), [(BOX, (870, 246)), (Box(0, 0.1, 1, 0.9), (974, 1024))])
async def test_the_image_is_the_figures_part_of_its_page(
    client: TestClient, house: House, figure: ShownFigure, box: Box, pixels: tuple[int, int]
) -> None:
    """Shows a crop with a narrow margin, within the size limits of chat platforms, without sign-in."""
    what = CitedPlace(figure.shelved.version, 2, "", (box,))
    response = await client.get((await shown(house, figure.channel, what, figure.shelved)).path)
    data = await response.read()
    assert (response.status, response.content_type) == (200, "image/png")
    assert struct.unpack(">II", data[16:24]) == pytest.approx(pixels, abs=2)
    assert max(struct.unpack(">II", data[16:24])) <= 1024


async def test_an_image_is_not_cached_and_can_be_embedded(client: TestClient, figure: ShownFigure) -> None:
    """Shows that caches keep it no longer than link and document live, and that other sites may embed it."""
    headers = (await client.get(figure.path)).headers
    assert headers["Cache-Control"] == "private, no-store"
    assert headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"


async def test_an_image_is_rendered_once(client: TestClient, house: House, figure: ShownFigure) -> None:
    """Shows that all answers with the same figure share its image, distinct from the page's."""
    other = await shown(
        house, figure.channel, CitedPlace(figure.shelved.version, 2, "", (BOX,)), figure.shelved
    )
    first, second = [await (await client.get(one.path)).read() for one in (figure, other)]
    whole = await (await client.get(f"{figure.page}/p/2@2x")).read()
    assert first == second != whole
    assert len(list((house.home / "images").iterdir())) == 2


async def test_page_and_image_links_are_not_interchangeable(client: TestClient, figure: ShownFigure) -> None:
    """Shows that access to a figure's image gives no access to its document."""
    picture, page = (path.rpartition("/")[2] for path in (figure.path, figure.page))
    for path in (f"/f/{page}", f"/v/{picture}", f"/v/{picture}/p/2@1x", f"/v/{picture}/file.pdf"):
        assert (await client.get(path)).status == 404


async def test_forged_links_are_refused_like_any_unknown_path(
    client: TestClient, figure: ShownFigure
) -> None:
    """Shows that the response never tells what is wrong with a link."""
    token = figure.path.rpartition("/")[2]
    forged = [token[:-1] + ("A" if token[-1] != "A" else "B"), token[:40], "x", token + "A", "%00"]
    answers = [await client.get(f"/f/{text}") for text in forged]
    bodies = {(answer.status, await answer.read()) for answer in answers}
    assert bodies == {(404, await (await client.get("/no/such/page")).read())}


async def test_an_expired_link_shows_nothing(client: TestClient, house: House, figure: ShownFigure) -> None:
    """Shows a 410 after a week, also for an image that was rendered before."""
    assert (await client.get(figure.path)).status == 200
    house.now += timedelta(days=7)
    await assert_ended(client, figure)


async def test_withdrawal_and_revocation_end_a_documents_images(
    client: TestClient, house: House, figure: ShownFigure
) -> None:
    """Shows that an image is refused as soon as its page is."""
    channel = await house.channel("beta")
    shelved = await house.shelve(channel, "b.pdf", make_pdf([*PAGES, ["End"]]))
    other = await shown(house, channel, CitedPlace(shelved.version, 2, "", (BOX,)), shelved)
    assert [(await client.get(one.path)).status for one in (figure, other)] == [200, 200]
    async with house.database.transaction() as session:
        gone = update(DocumentRow).where(col(DocumentRow.id) == figure.shelved.document)
        await session.execute(gone.values(state="deleted"))
    await house.channels.invalidate_links(channel.id)
    for one in (figure, other):
        await assert_ended(client, one)
        assert (await client.get(one.page)).status == 410


async def test_a_link_of_one_channel_shows_no_figure_of_another(
    client: TestClient, house: House, figure: ShownFigure
) -> None:
    """Shows that a valid signature is not enough if channel, version and citation disagree."""
    beta = await house.channel("beta")
    canary = await house.shelve(beta, "canary.pdf", make_pdf([["CANARY"]]))
    lent = await shown(house, figure.channel, CitedPlace(canary.version, 1, "", (BOX,)), canary)
    foreign = await shown(house, beta, CitedPlace(figure.shelved.version, 2, "", (BOX,)), figure.shelved)
    for one in (lent, foreign):
        await assert_ended(client, one)


async def test_a_citation_without_boxes_has_no_image(
    client: TestClient, house: House, figure: ShownFigure
) -> None:
    """Shows that a link never falls back to the whole page."""
    await assert_ended(
        client, await shown(house, figure.channel, CitedPlace(figure.shelved.version, 2), figure.shelved)
    )


async def assert_ended(client: TestClient, figure: ShownFigure) -> None:
    """Require a 410 without an image."""
    response = await client.get(figure.path)
    assert (response.status, response.content_type) == (410, "text/html")
    assert "Backup" not in await response.text()


@pytest.fixture
def impatient(house: House) -> House:
    """Limit page rendering to one second of CPU time."""
    house.renderer = LastingPdf(StorageSettings(home=house.home, render_seconds=1))
    return house


async def test_a_page_whose_rendering_is_killed_loses_only_its_image(
    impatient: House, client: TestClient
) -> None:
    """Shows that the sandboxed process hits its limit, a 503 is returned, and the next page is rendered."""
    channel = await impatient.channel("alpha")
    files = [("good.pdf", make_pdf(PAGES)), ("bad.pdf", make_pdf([["Figure 1"]]))]
    good, bad = [await impatient.shelve(channel, name, data) for name, data in files]
    blob = impatient.blobs.path(bad.sha256)
    blob.chmod(0o600)
    blob.write_bytes(make_form_bomb())
    deadly, well = [
        await shown(impatient, channel, CitedPlace(one.version, 1, "", (BOX,)), one) for one in (bad, good)
    ]
    refused = await client.get(deadly.path)
    assert (refused.status, refused.content_type) == (503, "text/html")
    assert (await client.get(well.path)).status == 200
