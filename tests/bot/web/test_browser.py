"""Browser tests: position of highlights, pages without JavaScript, and use of the console."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from aiohttp.test_utils import TestClient
from fakes.web_house import ADVANCE, HEIGHT, LEADING, LEFT, SIZE, TOP, WIDTH, House, console_of, make_pdf
from playwright.async_api import Browser, FloatRect, Page

from bot.core.models import Answer, AnswerState, NearestPage

pytestmark = pytest.mark.engine("chromium")

LINES = ["Backups", "The backups run daily at 2:00 AM", "and are kept for a year"]
QUOTE = "backups run daily at 2:00 AM"
# Index in LINES of the line with the quote.
LINE = 1
COLUMN = LINES[LINE].index(QUOTE)


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle in PDF points, origin top left."""

    x0: float
    y0: float
    x1: float
    y1: float

    def holds(self, other: Rectangle) -> bool:
        """True if ``other`` lies inside."""
        return self.x0 <= other.x0 and self.y0 <= other.y0 and self.x1 >= other.x1 and self.y1 >= other.y1


# Printed place of the quoted letters by the PDF's own operators: baseline to mid-height.
QUOTED = Rectangle(
    LEFT + COLUMN * ADVANCE,
    HEIGHT - TOP + LINE * LEADING - 0.55 * SIZE,
    LEFT + (COLUMN + len(QUOTE)) * ADVANCE,
    HEIGHT - TOP + LINE * LEADING,
)
# Limit for a highlight: neighbouring words and lines begin here.
AROUND = Rectangle(QUOTED.x0 - 3, QUOTED.y0 - 8, QUOTED.x1 + 3, QUOTED.y1 + 6)


@pytest.fixture
async def link(client: TestClient, house: House) -> str:
    """Return the URL of a cited page: page 2 of 3, with a quote on its second line."""
    return await cite(client, house, "alpha")


async def cite(client: TestClient, house: House, channel_name: str, answer: str = "At night. [1]") -> str:
    """Cite the quote in a channel, script an answer with it, and return the citation's URL."""
    channel = await house.channel(channel_name)
    pdf = make_pdf([["Cover"], LINES, ["End"]], labels="/PageLabels<</Nums[0<</S/r>>]>>")
    shelved = await house.shelve(channel, "SOP-IT-04.pdf", pdf, "Backup policy")
    citation = await house.cite(channel, shelved, 2, QUOTE)
    cited = (channel, citation, "Backup policy", "SOP-IT-04.pdf")
    house.answering.answers["When do backups run?"] = house.answer(answer, cited)
    return str(client.make_url(house.links.viewer_path(house.links.page_url(channel, citation))))


async def marked(page: Page) -> Rectangle:
    """Return the highlight in PDF points, measured relative to the page image in the browser."""
    picture, mark = await box_of(page, ".paper img"), await box_of(page, "#hit")
    while picture != (now := await box_of(page, ".paper img")):  # the page is still scrolling
        picture, mark = now, await box_of(page, "#hit")
    across, down = WIDTH / picture["width"], HEIGHT / picture["height"]
    left, top = (mark["x"] - picture["x"]) * across, (mark["y"] - picture["y"]) * down
    return Rectangle(left, top, left + mark["width"] * across, top + mark["height"] * down)


async def box_of(page: Page, selector: str) -> FloatRect:
    """Return the bounding box of an element in the browser."""
    await page.wait_for_selector(selector, state="attached")
    box = await page.locator(selector).first.bounding_box()
    assert box is not None
    return box


async def test_the_highlight_covers_the_quoted_words(page: Page, link: str) -> None:
    """On any screen the highlight covers the quote's printed place and nothing next to it.

    The pixels below it are dark and those of the margin are light; the text layer lies over the print.
    """
    for width, height in ((390, 844), (2400, 1200), (1200, 800)):
        await page.set_viewport_size({"width": width, "height": height})
        await page.goto(link, wait_until="load")
        await page.click("label[for=as-picture]")
        found = await marked(page)
        assert found.holds(QUOTED), (width, found, QUOTED)
        assert AROUND.holds(found), (width, found, AROUND)
    await page.goto(link, wait_until="load")
    under, margin = await darkness(page, QUOTED), await darkness(page, Rectangle(0, QUOTED.y0, 60, QUOTED.y1))
    assert under > 0.05
    assert margin == 0
    word, picture = page.locator(".words tspan", has_text="daily"), await box_of(page, ".paper img")
    box = await word.bounding_box()
    assert box is not None
    left = (box["x"] - picture["x"]) * WIDTH / picture["width"]
    assert left == pytest.approx(LEFT + LINES[LINE].index("daily") * ADVANCE, abs=2)
    await page.keyboard.press("Control+a")
    assert LINES[LINE] in await page.evaluate("getSelection().toString()")


async def darkness(page: Page, place: Rectangle) -> float:
    """Return the share of dark pixels of the page image within a rectangle."""
    share = await page.evaluate(
        """async ([x0, y0, x1, y1]) => {
            const picture = document.querySelector(".paper img");
            await picture.decode();
            const canvas = document.createElement("canvas");
            [canvas.width, canvas.height] = [picture.naturalWidth, picture.naturalHeight];
            const brush = canvas.getContext("2d");
            brush.drawImage(picture, 0, 0, canvas.width, canvas.height);
            const [across, down] = [canvas.width, canvas.height];
            const { data } = brush.getImageData(x0 * across, y0 * down, (x1 - x0) * across, (y1 - y0) * down);
            let dark = 0;
            for (let at = 0; at < data.length; at += 4) dark += data[at] < 128;
            return dark / (data.length / 4);
        }""",
        [place.x0 / WIDTH, place.y0 / HEIGHT, place.x1 / WIDTH, place.y1 / HEIGHT],
    )
    return float(share)


async def test_the_head_leaves_the_screen_to_the_page(page: Page, client: TestClient, house: House) -> None:
    """At most 160 pixels stand above the page, also of an answer with two long quotes, on any screen."""
    channel = await house.channel("alpha")
    lines = ["the backups of all servers run daily and are kept for years"] * 9
    shelved = await house.shelve(channel, "SOP-IT-04.pdf", make_pdf([lines]), "Backup policy " * 9)
    text = shelved.pages[0].text
    quotes = [(shelved, 1, text[:200]), (shelved, 1, "the backups")]
    cited, _ = await house.cite_answer(channel, *quotes)
    path = house.links.viewer_path(house.links.page_url(channel, cited))
    for width, height in ((1280, 800), (390, 844)):
        await page.set_viewport_size({"width": width, "height": height})
        await page.goto(str(client.make_url(path)), wait_until="load")
        shown = page.locator(".paper, .text").locator("visible=true").first
        top = await shown.evaluate("one => one.getBoundingClientRect().top + scrollY")
        assert top <= 160, width
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_a_page_is_printed_alone_on_one_sheet(page: Page, link: str) -> None:
    """Nothing of the viewer is printed; the highlight is."""
    await page.goto(link, wait_until="load")
    printed = await page.pdf(format="A4")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    await page.emulate_media(media="print")
    for selector in (".about", ".bar", ".foot"):
        assert await page.locator(selector).is_hidden()
    assert (await marked(page)).holds(QUOTED)


async def test_everything_works_without_javascript(browser: Browser, link: str) -> None:
    """Page, number, quote, highlight, navigation, zoom and text work with scripts disabled."""
    context = await browser.new_context(java_script_enabled=False, viewport={"width": 900, "height": 700})
    page = await context.new_page()
    await page.goto(link, wait_until="load")
    assert (await marked(page)).holds(QUOTED)
    assert QUOTE in await page.inner_text(".quote")
    narrow = (await box_of(page, ".paper"))["width"]
    await page.click("label[for=x200]")
    assert (await box_of(page, ".paper"))["width"] == pytest.approx(2 * narrow, rel=0.02)
    assert (await marked(page)).holds(QUOTED)
    await page.click("label[for=as-text]")
    assert LINES[2] in await page.inner_text(".text")
    await page.click("[aria-label='Next page']")
    assert "Page 3 of 3" in await page.inner_text(".number")
    await page.click("text=Back to the quoted page 2")
    assert await page.locator("#hit").count() == 1
    await context.close()


@pytest.mark.long
async def test_document_search_works_without_javascript(browser: Browser, link: str) -> None:
    """Search from the box, results by page, and highlights on the page that a result opens."""
    context = await browser.new_context(java_script_enabled=False, viewport={"width": 900, "height": 700})
    page = await context.new_page()
    await page.goto(link, wait_until="load")
    await page.fill("#find", "DAILY at 2:00")
    await page.keyboard.press("Enter")
    assert await page.inner_text(".hits mark") == "daily at 2:00"
    await page.click(".hits li li a")
    await page.wait_for_load_state()
    place = await marked(page)
    mark, picture = await box_of(page, "#found-1"), await box_of(page, ".paper img")
    assert mark["y"] < 700
    left = (mark["x"] - picture["x"]) * WIDTH / picture["width"]
    assert left == pytest.approx(LEFT + LINES[LINE].index("daily") * ADVANCE, abs=2)
    assert place.holds(QUOTED)
    await page.fill("#go", "3")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".turn .number >> text=Page 3 of 3")
    await context.close()


async def test_the_quote_is_copied_with_its_reference(page: Page, link: str) -> None:
    """Copies quote, title, file, version and page and confirms it; also without clipboard access."""
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.goto(link)
    line = "Backup policy. File SOP-IT-04.pdf, version 1, page 2 (printed: ii)."
    for clipboard in ("", "void (navigator.clipboard.writeText = () => Promise.reject(new Error()))"):
        await page.evaluate("navigator.clipboard.writeText('')")
        await page.evaluate("document.getElementById('copied').textContent = ''")
        await page.evaluate(clipboard)
        await page.click("#copy")
        await page.wait_for_selector("text=Copied")
        assert await page.evaluate("navigator.clipboard.readText()") == f"\u201c{QUOTE}\u201d\n\u2014 {line}"


async def test_a_phone_opens_the_passage_as_text(browser: Browser, link: str) -> None:
    """Text at a readable size, in view without zooming; the marked image is one tap away."""
    context = await browser.new_context(
        viewport={"width": 390, "height": 500}, device_scale_factor=3, has_touch=True, is_mobile=True
    )
    page = await context.new_page()
    await page.goto(link, wait_until="load")
    mark = page.locator(".text mark")
    assert await mark.inner_text() == QUOTE
    assert float(await mark.evaluate("mark => parseFloat(getComputedStyle(mark).fontSize)")) >= 16
    box = await box_of(page, ".text mark")
    assert 0 < box["y"] < 480
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await page.locator(".paper").is_hidden()
    await page.tap("label[for=as-picture]")
    assert (await marked(page)).holds(QUOTED)
    await context.close()


async def test_a_zoomed_page_loads_tiles_of_higher_resolution(page: Page, link: str) -> None:
    """The visible tiles are loaded over the page image at 200 %; none was requested before."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.rpartition("@")[2]))
    await page.goto(link, wait_until="load")
    await page.wait_for_timeout(100)
    assert not [one for one in asked if one.startswith("4x")]
    async with page.expect_response("**/p/2@4x-1"):
        await page.click("text=200 %")
    near = "document.querySelector('.sharp img')"
    await page.evaluate(f"{near}.decode()")
    assert await page.evaluate(f"{near}.naturalWidth") == pytest.approx(400 * WIDTH / 72 / 2, abs=1)
    whole, first = await box_of(page, ".paper > img"), await box_of(page, ".sharp img")
    assert first["width"] == pytest.approx(whole["width"] / 2, abs=1)
    assert (first["x"], first["y"]) == (whole["x"], whole["y"])


async def test_the_keyboard_turns_pages_and_returns(page: Page, link: str) -> None:
    """Arrow keys turn pages, plus zooms, Escape returns to the cited page."""
    await page.goto(link, wait_until="load")
    await page.keyboard.press("ArrowRight")
    await page.wait_for_url(f"{link}/3")
    await page.keyboard.press("Escape")
    await page.wait_for_url(link)
    await page.keyboard.press("+")
    assert await page.is_checked("#x150")


async def test_the_highlight_is_in_view_when_the_page_opens(
    page: Page, client: TestClient, house: House
) -> None:
    """A passage at the bottom of a page is scrolled into view, also on a phone."""
    channel = await house.channel("alpha")
    shelved = await house.shelve(channel, "a.pdf", make_pdf([["x"] * 30 + ["the last line"]]))
    citation = await house.cite(channel, shelved, 1, "the last line")
    await page.set_viewport_size({"width": 800, "height": 500})
    path = house.links.viewer_path(house.links.page_url(channel, citation))
    await page.goto(str(client.make_url(path)), wait_until="load")
    await page.wait_for_function(
        "document.getElementById('hit').getBoundingClientRect().bottom < innerHeight"
    )


async def test_the_opened_quote_stands_out_and_keys_reach_the_others(
    page: Page, client: TestClient, house: House
) -> None:
    """Two highlights on a page, the opened one on top.

    "n" goes to the quote at the bottom of another document and scrolls to it; "p" goes back.
    """
    channel = await house.channel("alpha")
    shelved = await house.shelve(channel, "SOP-IT-04.pdf", make_pdf([LINES]), "Backup policy")
    other = await house.shelve(channel, "b.pdf", make_pdf([["x"] * 30 + ["the last line"]]), "Tapes")
    quotes = ((shelved, 1, QUOTE), (shelved, 1, "kept for a year"), (other, 1, "the last line"))
    first, second, _ = await house.cite_answer(channel, *quotes)
    urls = [
        str(client.make_url(house.links.viewer_path(house.links.page_url(channel, one))))
        for one in (first, second)
    ]
    await page.set_viewport_size({"width": 900, "height": 500})
    await page.goto(urls[0], wait_until="load")
    assert (await marked(page)).holds(QUOTED)
    strong, weak = [await colour_of(page, selector) for selector in ("#hit", ".mark.other")]
    assert strong != weak
    assert await page.locator(".mark").count() == 2
    assert await page.locator(".mark-number").all_text_contents() == ["1", "2"]
    await page.keyboard.press("n")
    await page.wait_for_url(urls[1])
    assert await page.inner_text(".quote") == "kept for a year"
    assert await colour_of(page, "#hit") == strong
    lower = await marked(page)
    assert lower.y0 > QUOTED.y1
    await page.click("text=Next quote")
    await page.wait_for_selector("h1 >> text=Tapes")
    await page.wait_for_load_state("load")
    assert (await box_of(page, "#hit"))["y"] < 480
    assert "[3], 3 of 3" in await page.inner_text(".quotes")
    await page.keyboard.press("p")
    await page.wait_for_url(urls[1])


async def colour_of(page: Page, selector: str) -> str:
    """Return the fill colour of a highlight."""
    return str(await page.locator(selector).first.evaluate("mark => getComputedStyle(mark).fill"))


async def test_refused_links_show_what_to_do(
    browser: Browser, client: TestClient, link: str, house: House
) -> None:
    """A forged link shows the 404 page; a revoked one of a channel shows the 410 page."""
    page = await browser.new_page()
    forged = await page.goto(link[:-1] + ("A" if link[-1] != "A" else "B"))
    assert forged is not None
    assert forged.status == 404
    assert "There’s nothing at this address" in await page.inner_text("h1")
    await house.channels.invalidate_links((await house.channel("alpha")).id)
    ended = await page.goto(link)
    assert ended is not None
    assert ended.status == 410
    assert "This link has expired" in await page.inner_text("h1")


async def test_a_button_opens_its_page_and_each_mark_its_quote(
    page: Page, client: TestClient, house: House
) -> None:
    """Two quotes on a page share a button, which opens the first; each number opens its own quote.

    The headings of passages are bold.
    """
    channel = await house.channel("alpha")
    shelved = await house.shelve(channel, "SOP-IT-04.pdf", make_pdf([LINES]), "Backup policy")
    quotes = (QUOTE, "kept for a year")
    cited = [
        (channel, await house.cite(channel, shelved, 1, quote), "Backup policy", "SOP-IT-04.pdf")
        for quote in quotes
    ]
    place = "Backup policy, p. 1"
    written = house.answer(f"{place}\nAt night. [1] For a year. [2]", *cited)
    house.answering.answers["When?"] = replace(written, headings=(place,))
    await page.goto(console_of(client))
    await page.wait_for_selector("#documents >> text=Backup policy")
    await page.fill("#question", "When?")
    await page.keyboard.press("Enter")
    button = page.locator(".source")
    shown = (await button.inner_text()).split("\n")
    assert [line.strip() for line in shown if line.strip()] == ["p. 1 · Backup policy", *quotes]
    assert (await page.inner_text(".answer strong")).strip() == place
    assert await page.inner_text(".answer") == f"{place}\nAt night.1 For a year.2"
    said = page.frame_locator("#reader-frame").locator(".quote")
    marks, numbers = page.locator(".answer .cite"), page.locator(".sources .cite")
    assert await numbers.all_inner_texts() == ["1", "2"]
    for control, quote in (
        (marks.nth(1), quotes[1]),
        (button, quotes[0]),
        (numbers.nth(1), quotes[1]),
        (numbers.nth(0), quotes[0]),
    ):
        await control.click()
        await said.get_by_text(quote).wait_for(state="attached")
        assert await button.get_attribute("aria-current") == "true"


@pytest.mark.long
async def test_a_draft_is_shown_while_the_answer_is_written(
    page: Page, client: TestClient, house: House, link: str
) -> None:
    """Drafts are shown as text with a progress mark; the answer replaces them.

    The next question finds nothing, and the closest page can be opened.
    """
    near = NearestPage("SOP-IT-04.pdf", 2, link, "SOP-IT-04.pdf")
    house.answering.answers["Who am I?"] = Answer(AnswerState.NOT_FOUND, "No.", nearest=near)
    house.answering.beginnings = ("At <b>night</b>. [1]",)
    house.answering.may_end.clear()
    await page.goto(console_of(client))
    await page.wait_for_selector("#documents >> text=Backup policy")
    await page.fill("#question", "When do backups run?")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".answer >> text=At <b>night</b>.")
    assert await page.locator(".working").count() == 1
    house.answering.may_end.set()
    await page.wait_for_selector(".cite")
    assert await page.inner_text(".answer") == "At night.1"
    assert await page.locator(".working").count() == 0
    await page.fill("#question", "Who am I?")
    await page.keyboard.press("Enter")
    await page.click(".source >> text=p. 2 · SOP-IT-04.pdf")
    await page.frame_locator("#reader-frame").locator(".number").wait_for()


async def test_text_of_models_and_pdfs_is_never_markup(page: Page, client: TestClient, house: House) -> None:
    """Tags and scripts in answer, title and file name appear as text."""
    await cite(client, house, "alpha", "<img src=x onerror=alert(1)> [1] and [7] **no**")
    await page.goto(console_of(client))
    await page.wait_for_selector("#documents >> text=Backup policy")
    await page.fill("#question", "When do backups run?")
    await page.click("#ask button")
    await page.wait_for_selector(".cite")
    assert "<img src=x onerror=alert(1)>1 and [7] **no**" in await page.inner_text(".answer")
    assert await page.locator(".answer img").count() == 0


async def test_asking_without_documents_says_what_to_do(page: Page, client: TestClient, house: House) -> None:
    """The question stays in its field until there is something to ask."""
    (house.home / "inbox").mkdir()
    await page.goto(console_of(client))
    await page.wait_for_selector("#upload[data-place]:not([data-place=''])")
    await page.fill("#question", "When do backups run?")
    await page.keyboard.press("Enter")
    note = "There are no documents to answer from yet. Drop a PDF on this page, then ask again."
    await page.wait_for_selector(f"#ask-note >> text={note}")
    assert await page.input_value("#question") == "When do backups run?"


async def test_documents_and_pages_are_links_in_the_side_bar(
    page: Page, client: TestClient, link: str
) -> None:
    """A document opens at its first page; uploads are folded away; the only channel is chosen everywhere."""
    await page.goto(console_of(client))
    await page.wait_for_selector("#documents a")
    assert await page.locator("#drop-here").is_hidden()
    await page.click("#upload summary")
    assert await page.locator("#drop-here").is_visible()
    await page.click("#documents >> text=Backup policy")
    await page.wait_for_selector(".number >> text=Page 1 of 3")
    for name, heading in (
        ("Conversations", "Conversations in alpha"),
        ("Quality", "Quality of alpha"),
        ("Search debugger", "Search debugger"),
    ):
        await page.goto(str(client.make_url("/")))
        await page.get_by_role("link", name=name).click()
        await page.wait_for_selector(f"h1 >> text={heading}")
    assert "Ask alpha now" in await page.inner_text("form.ask")


@pytest.mark.long
async def test_an_empty_console_names_the_folder_to_drop_into(
    page: Page, client: TestClient, house: House
) -> None:
    """Without a channel the page names the first channel's folder; an empty channel shows its own."""
    (house.home / "inbox").mkdir()
    await page.goto(console_of(client))
    hole = page.locator("#hole code")
    await hole.wait_for()
    assert await hole.inner_text() == str(house.home / "inbox" / "documents")
    await house.channel("alpha")
    await page.wait_for_function(
        "folder => document.querySelector('#hole code').textContent === folder",
        arg=str(house.home / "inbox" / "alpha"),
    )
    assert "Drop a PDF to begin" in await page.inner_text("#headline")


# True once all tiles of the page are loaded.
QUARTERS = "() => [...document.querySelectorAll('.sharp img')].every(one => one.complete && one.naturalWidth)"


@pytest.mark.long
async def test_a_page_with_a_renewed_link_still_loads_tiles(page: Page, house: House, link: str) -> None:
    """Tiles loaded on zooming use the renewed link after the old one has expired."""
    await page.clock.install()
    await page.goto(link)
    before = page.url
    house.now += timedelta(days=4)
    async with page.expect_response("**/renewal"):
        await page.clock.fast_forward(4 * 86_400_000)
    await page.wait_for_function("before => location.href !== before", arg=before)
    house.now += timedelta(days=5)
    await page.get_by_text("200 %").click()
    await page.wait_for_function(QUARTERS)


async def test_an_open_page_renews_its_link_in_place(page: Page, house: House, link: str) -> None:
    """After four days the page has renewed its link without a reload."""
    await page.clock.install()
    await page.goto(link)
    await page.get_by_text("200 %").click()
    await page.wait_for_function(QUARTERS)
    before, asked = page.url, []
    page.on("request", lambda request: asked.append((request.method, request.url)))
    house.now += timedelta(days=4)
    async with page.expect_response("**/renewal"):
        await page.clock.fast_forward(4 * 86_400_000)
    await page.wait_for_function("before => location.href !== before", arg=before)
    assert [one for one in asked if "/v/" in one[1]] == [("POST", f"{before}/renewal")]
    assert await page.locator("#x200").is_checked()
    house.now += timedelta(days=5)
    await page.locator('[data-key~="ArrowRight"]').first.click()
    await page.wait_for_url("**/3")
    assert await page.locator("#title").inner_text() == "Backup policy"
    old = before.rpartition("/")[2]
    assert old not in await page.content()
