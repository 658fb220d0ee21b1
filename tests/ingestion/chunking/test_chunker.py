"""Chunker: size limits, sections, and exact word maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from samples.printed import BODY, HEADING, Row, read_pdf

from ingestion.chunking.chunker import chunk_document
from ingestion.chunking.segments import sentences
from ingestion.chunking.structure import Structure
from storage.text.token_counts import count_tokens


def pieces(text: str) -> int:
    """Count word pieces like a tokenizer with two special tokens: one per four letters."""
    return 2 + sum(-(-len(word) // 4) for word in text.split())


def body(text: str) -> Row:
    return text, BODY, False


def heading(text: str) -> Row:
    return text, HEADING, True


WORD = st.text("abcdefgHIJ1.-é汉", min_size=1, max_size=12) | st.just("x" * 300)
TEXT = st.lists(WORD, min_size=1, max_size=30).map(" ".join)
ROW = st.one_of(TEXT.map(body), TEXT.map(lambda text: heading(text[:60].strip())), st.just(body("")))
DOCUMENT = st.lists(st.lists(ROW, max_size=12), max_size=4)


@given(DOCUMENT, st.integers(20, 120), st.integers(20, 80))
def test_no_chunk_exceeds_either_limit(pages: list[list[Row]], limit: int, window: int) -> None:
    """Tokens and word pieces are within limits and counted correctly for any text, endless words included."""
    document = chunk_document(read_pdf(pages), limit=limit, pieces=pieces, window=window)
    for ordinal, chunk in enumerate(document.chunks):
        assert chunk.ordinal == ordinal
        assert chunk.tokens == count_tokens(chunk.text) <= limit
        assert pieces(chunk.text) <= window


@given(DOCUMENT.map(lambda pages: pages[:2]), st.integers(20, 120))
def test_offsets_are_exact_and_no_text_is_lost(pages: list[list[Row]], limit: int) -> None:
    """Each word's range holds that word, page starts are right, and all text is in some chunk."""
    pdf = read_pdf(pages)
    document = chunk_document(pdf, limit=limit, pieces=pieces, window=256)
    found = ""
    for chunk in document.chunks:
        assert chunk.page_starts[0][0] == 0
        placed = "".join(chunk.text[word.start : word.end] for word in chunk.words)
        assert placed == "".join(chunk.text.split())
        for word in chunk.words:
            assert (
                word.page == max((start, page) for start, page in chunk.page_starts if start <= word.start)[1]
            )
        found += placed
    assert found == "".join("".join(page.text.split()) for page in pdf.pages)


def cut(
    pages: Sequence[Sequence[Row]], limit: int = 100, **options: str
) -> list[tuple[tuple[str, ...], str]]:
    """Return the heading path and text of every chunk."""
    document = chunk_document(read_pdf(pages, **options), limit=limit, pieces=pieces, window=256)
    return [(chunk.heading_path, chunk.text) for chunk in document.chunks]


SENTENCE = "The backup of every server runs daily at two in the morning and is checked by hand."


def test_a_chunk_never_mixes_two_top_level_sections() -> None:
    """Short sections stay separate, each under its heading."""
    chunks = cut([[heading("1. Scope"), body(SENTENCE), heading("2. Restore"), body(SENTENCE)]], title="Plan")
    assert chunks == [
        (("1. Scope",), f"1. Scope\n{SENTENCE}"),
        (("2. Restore",), f"2. Restore\n{SENTENCE}"),
    ]


def test_small_subsections_share_a_chunk() -> None:
    """Headings are nested by size, and every position of the chunk has its own path."""
    rows = [heading("Plan"), ("Daily", 14.0, True), body("One."), ("Weekly", 14.0, True), body("Two.")]
    (chunk,) = chunk_document(read_pdf([rows], title="Other"), limit=100, pieces=pieces, window=256).chunks
    assert chunk.text == "Plan\nDaily\nOne.\nWeekly\nTwo."
    assert chunk.heading_path == ("Plan", "Daily")
    found = [chunk.section_at(chunk.text.index(word)) for word in ("Plan", "One.", "Weekly", "Two.")]
    assert found == [("Plan",), ("Plan", "Daily"), ("Plan", "Weekly"), ("Plan", "Weekly")]


@given(DOCUMENT, st.integers(20, 120))
def test_every_word_has_the_headings_printed_before_it(pages: list[list[Row]], limit: int) -> None:
    """The path at a word does not depend on chunk boundaries: it is the path in one large chunk."""
    pdf = read_pdf(pages)
    found = []
    for most in (limit, 100_000):
        document = chunk_document(pdf, limit=most, pieces=lambda _: 1, window=256)
        words = ((word, chunk) for chunk in document.chunks for word in chunk.words)
        found.append({(word.page, word.box, chunk.section_at(word.start)) for word, chunk in words})
    assert found[0] == found[1]


def test_a_repeated_lead_in_keeps_the_section_of_its_list() -> None:
    """A split list begins with its lead-in again, under the same heading."""
    rows = [
        heading("Cover"),
        body(LEAD),
        *[body(f"• Service number {n} and what is its own") for n in range(9)],
    ]
    document = chunk_document(read_pdf([rows], title="Plan"), limit=60, pieces=pieces, window=256)
    assert len(document.chunks) > 2
    assert {path for chunk in document.chunks for _, path in chunk.sections} == {("Cover",)}


def test_a_page_end_ends_a_chunk_unless_a_sentence_continues() -> None:
    """The sentence is whole in one chunk, which has the start of its second page."""
    first = [body("Intro ends here."), body(""), body("The restore takes")]
    second = [body("two hours."), body(""), body("Then it is checked.")]
    document = chunk_document(read_pdf([first, second]), limit=100, pieces=pieces, window=256)
    assert [chunk.text for chunk in document.chunks] == [
        "Intro ends here.\n\nThe restore takes\ntwo hours.",
        "Then it is checked.",
    ]
    assert document.chunks[0].page_starts == ((0, 1), (36, 2))
    assert [(chunk.first_page, chunk.last_page) for chunk in document.chunks] == [(1, 2), (2, 2)]


def test_steps_and_rows_are_not_split() -> None:
    """However small the chunks, a numbered step or a table row that fits stays whole."""
    steps = [
        body(f"{number}. Open valve {number}. Wait. Close it again and note the time.")
        for number in range(1, 9)
    ]
    for _, text in cut([steps], limit=40):
        assert all(part.startswith(tuple("12345678")) and part.endswith("time.") for part in text.split("\n"))


LEAD = "The following services are not covered by the plan:"


def test_a_split_list_repeats_its_lead_in() -> None:
    """Shows that "Cosmetic surgery" is never without the words that exclude it, even on the next page."""
    items = [body(f"• Service number {n} and everything that belongs to it") for n in range(12)]
    found = cut([[body(LEAD), *items[:9]], [*items[9:], body("Other services are covered.")]], limit=60)
    lists = [text for _, text in found if "•" in text]
    assert len(lists) > 3
    assert all(text.startswith(f"{LEAD}\n•") for text in lists)


def test_a_lead_in_belongs_to_the_items_of_its_own_list() -> None:
    """A lead-in that is an item introduces those below it; text after the list has none."""
    inner = [body(f"– part {n} of the first choice, with a few words more") for n in range(6)]
    first = [body(LEAD), body("• First choice:"), *inner, body("• Second choice with many words to say")]
    after = [body("This closes the list for good."), body("• An item of no list, with a few words")]
    found = [text for _, text in cut([first, after], limit=30)]
    assert all(text.startswith("• First choice:\n–") for text in found if "part" in text and LEAD not in text)
    assert any(text.startswith(f"{LEAD}\n• Second") for text in found)
    assert not any(LEAD in text for text in found if "no list" in text)


def test_a_step_longer_than_a_chunk_is_split_at_sentences() -> None:
    step = "3. " + " ".join(
        f"Valve {number} is turned until its pointer stands at zero." for number in range(60)
    )
    found = cut([[heading("Start"), body(step)]])
    assert len(found) > 3
    assert all(text.endswith("at zero.") for _, text in found)
    assert all(text.startswith(("Start", "3. ", "Valve")) for _, text in found)


def test_parts_of_a_long_section_are_about_equal() -> None:
    """A section slightly over the limit leaves no tiny remainder."""
    chunks = cut([[body(SENTENCE) for _ in range(6)]], limit=90)
    sizes = [count_tokens(text) for _, text in chunks]
    assert len(sizes) == 2
    assert min(sizes) * 2 > max(sizes)


def test_running_lines_are_kept_on_their_first_page_only() -> None:
    """A header repeated on every page is in the first page's chunk only."""
    pages = [[body(f"SOP-IT-04 Page {n} of 4"), body(""), *[body(f"Text {n}.")] * 40] for n in range(1, 5)]
    texts = [text for _, text in cut(pages, limit=400)]
    assert "SOP-IT-04 Page 1" in texts[0]
    assert not any("SOP-IT-04" in text for text in texts[1:])


def test_the_title_is_the_largest_text_then_the_files_own() -> None:
    """In that order, running lines included; the title is no heading of its sections."""

    def title(pages: list[list[Row]], own: str = "") -> str:
        return chunk_document(read_pdf(pages, own), limit=99, pieces=pieces, window=99).title

    rows = [
        heading("Contents"),
        body(SENTENCE),
        ("Backup and", 24.0, False),
        ("Restore", 24.0, False),
        body(SENTENCE),
    ]
    assert title([rows], "Own title") == "Backup and Restore"
    assert title([[heading("1. Climate"), body(SENTENCE)]], "Own title") == "Own title"
    assert title([rows]) == "Backup and Restore"
    assert title([[body(SENTENCE)]]) == ""
    assert title([]) == ""
    running = [[heading("Harbour rules"), *[body(SENTENCE)] * 9]] * 5
    assert title(running) == "Harbour rules"
    assert title([[heading("ACME"), ("Travel policy", 15.0, True), body(SENTENCE)]]) == "ACME Travel policy"
    names = [("Brakes of trams", 24.0, True), ("https://brakes.example/", 24.0, True)]
    authors = [("Ann Smith and Bob Jones", 15.0, True), body(SENTENCE)]
    assert title([[*names, *authors]]) == "Brakes of trams"
    spaced = [names[0], ("", 0.0, False), ("It is about all that stops a tram.", 24.0, True), *authors]
    assert title([spaced]) == "Brakes of trams"
    menu = [heading("STARTERS"), *[("Tuna tartare 9 EUR", 15.0, True), body(SENTENCE)] * 2]
    assert title([menu]) == ""
    parted = [("Rules of main\xad", 24.0, True), ("tenance", 24.0, True), body(SENTENCE)]
    assert title([parted]) == "Rules of maintenance"
    assert cut([[heading("Fire plan"), body(SENTENCE)]]) == [((), f"Fire plan\n{SENTENCE}")]


def test_a_page_without_text_gives_no_chunk() -> None:
    assert cut([[], [body("")]]) == []


def test_text_that_looks_like_a_page_marker_is_unchanged() -> None:
    """Document text before markers are added has no effect on page numbers."""
    document = chunk_document(
        read_pdf([[body("--- Page 99 ---"), body("Text.")]]), limit=99, pieces=pieces, window=99
    )
    assert "--- Page 99 ---" in document.chunks[0].text
    assert document.chunks[0].page_starts == ((0, 1),)


def test_abbreviations_and_numbers_end_no_sentence() -> None:
    """Nor do versions."""
    text = 'See e.g. Fig. 3 of version 2.1. It costs 1,204.5 dollars. Ask Dr. Smith! "Really?" Yes'
    assert [text[start:end] for start, end in sentences(text, 0, len(text))] == [
        "See e.g. Fig. 3 of version 2.1.",
        "It costs 1,204.5 dollars.",
        "Ask Dr. Smith!",
        '"Really?"',
        "Yes",
    ]


def test_a_line_with_numbers_other_than_pages_is_no_running_line() -> None:
    """The load on each sheet of a catalogue stays, the page number below it is dropped."""
    sheets = [
        [
            body(f"Rack {40 - 3 * number} carries {7 * number} kg"),
            *[body(SENTENCE)] * 8,
            body(f"Page {number} of 9"),
        ]
        for number in range(1, 10)
    ]
    text = "\n".join(text for _, text in cut(sheets))
    assert [f"carries {7 * number} kg" in text for number in range(1, 10)] == [True] * 9
    assert [f"Page {number} of 9" in text for number in range(2, 10)] == [False] * 8


def test_a_printed_number_sign_is_no_number() -> None:
    """Shows a document whose pages begin with comments of a script, in the place of running lines."""
    heads = ("# 1", "2 2", "# 3", "4 4")
    found = cut([[body(head), *[body(SENTENCE)] * 8] for head in heads])
    assert [text.split("\n")[0] for _, text in found if text[:3] in heads] == [*heads]


def test_chunking_a_large_page_is_linear() -> None:
    """Each letter of a page with thousands of chunks is measured a few times, not once per chunk."""
    measured = 0

    def measuring(text: str) -> int:
        nonlocal measured
        measured += len(text)
        return pieces(text)

    pdf = read_pdf([[body(f"Valve {number} is closed.") for number in range(10_000)]])
    chunks = chunk_document(pdf, limit=30, pieces=measuring, window=256).chunks
    assert len(chunks) > 2_000
    assert measured < 30 * len(pdf.pages[0].text)


def test_a_warning_box_stays_with_its_text_and_section() -> None:
    """The label opens no section and never ends a chunk."""
    steps = [body(f"{number}. Open valve number {number} slowly and wait a while.") for number in range(1, 5)]
    rows = [heading("1. Valves"), *steps, body(""), heading("WARNING"), body(""), body(SENTENCE), *steps]
    document = chunk_document(read_pdf([rows], title="Plant manual"), limit=50, pieces=pieces, window=256)
    assert len(document.chunks) > 2
    assert {path for chunk in document.chunks for _, path in chunk.sections} == {("1. Valves",)}
    (box,) = (chunk.text for chunk in document.chunks if "WARNING" in chunk.text)
    assert f"WARNING\n\n{SENTENCE}" in box


def test_a_callout_without_a_frame_is_whole() -> None:
    """Shows all sentences below a label; more indented paragraphs belong to it, others do not."""
    note = ["NOTE", "", "Gas may collect. Open the window.", "", "Wear gloves at all times."]
    pdf = read_pdf(
        [[*map(body, ["Valves leak.", "", *note, "", "1. Close the valve.", "2. Open the door."])]]
    )
    text = pdf.pages[0].text
    begin, end = text.index("NOTE"), text.index("1. Close")
    for indent, last in ((0.0, "window."), (0.05, "times.")):
        lines = tuple(
            replace(line, box=line.box._replace(x0=line.box.x0 + indent * (begin <= line.start < end)))
            for line in pdf.lines[0]
        )
        pieces_of = Structure(replace(pdf, lines=(lines,))).segments(0)
        found = [text[piece.start : piece.end] for piece in pieces_of if piece.is_callout]
        assert found == [text[begin : text.index(last) + len(last)]]
    wrapped = read_pdf([[*map(body, ["Valves leak. Important", "parts are named below."])]])
    assert not any(piece.is_callout for piece in Structure(wrapped).segments(0))
