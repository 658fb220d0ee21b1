"""Figures in answers: only the requested one, or one that the cited text refers to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.core import (
    BACKUPS,
    WORDS,
    HashEmbedder,
    Register,
    Shelf,
    World,
    make_passage,
    make_publication,
    place_words,
)
from harness.tables import for_each

from bot.answer_settings import AnswerSettings
from bot.answers.generation.judge import Judge
from bot.answers.retrieval.hybrid_retriever import HybridRetriever
from bot.answers.understanding.answer_types import figure_question, speaks_of
from bot.core.models import AnswerState
from storage.models import Box, Figure, FigureKind

BOX = Box(0.1, 0.2, 0.9, 0.5)
CAPTIONS = ("Figure 1. Failed backups by month", "Figure 2. Disk space of the servers", "")
NAMING = "As Figure 1 shows, no tape was lost in winter."
TEXT = f"{BACKUPS}\n{CAPTIONS[0]}\n{CAPTIONS[1]}\n{NAMING}\nThe tape robot is cleaned every week."


def make_figure(caption: str, text: str = "", kind: FigureKind = FigureKind.UNKNOWN) -> Figure:
    return Figure(1, BOX, kind, True, 0, (), caption, "", text)


@pytest.fixture
def world() -> World:
    """Return a page with two captioned charts and one without a caption."""
    figures = [
        make_figure(CAPTIONS[0], "Jan Feb Mar", FigureKind.BAR),
        make_figure(CAPTIONS[1], "40 80"),
        make_figure("", "Oslo Bergen Narvik"),
    ]
    return World(Shelf([make_passage(TEXT)], figures), Register())


@pytest.mark.parametrize(
    ("question", "caption"),
    [
        ("Show me the chart of failed backups", CAPTIONS[0]),
        ("failed backups bar chart", CAPTIONS[0]),
        ("Please show figure 2", CAPTIONS[1]),
        ("I'd like to see the diagram of disk space", CAPTIONS[1]),
        ("Disk space of the servers - show the diagram", CAPTIONS[1]),
    ],
)
async def test_the_requested_figure_is_the_answer(world: World, question: str, caption: str) -> None:
    """The caption is quoted, and the link marks the figure."""
    answer = await world.answering().answer(world.question(question))
    assert answer.state is AnswerState.PASSAGES
    assert answer.text == f"{WORDS.figures_lead(1)}\n“{caption}” [1]"
    assert [(one.page, one.quote) for one in answer.citations] == [(1, caption)]
    assert [(one.caption, one.box) for one in answer.figures] == [(caption, BOX)]
    kept = {world.register.page_url(world.question("").channel, one): one for one in world.register.kept}
    assert kept[answer.figures[0].url].boxes == (BOX,)
    assert answer.figures[0].image == answer.figures[0].url.replace("/v/", "/f/")
    assert answer.figures[0].number == 1


@pytest.mark.parametrize(
    "question", ["Show me the chart with Oslo and Bergen", "What is in the picture of Oslo and Bergen?"]
)
async def test_a_figure_without_a_caption_is_marked_instead_of_quoted(world: World, question: str) -> None:
    """The figure is found by the words in it, if one is wanted or nothing else answers."""
    world.judge = Judge(answer_probability=1)
    answer = await world.answering().answer(world.question(question))
    assert answer.text == f"{WORDS.figures_lead(1)}\n{WORDS.figure_on(page=1, number=1)}"
    assert [(one.quote, one.boxes) for one in answer.citations] == [("", (BOX,))]
    assert [(one.caption, one.number) for one in answer.figures] == [("", 1)]


@pytest.mark.parametrize(
    ("question", "caption"),
    [
        ("When do backups run? Show me figure 1, too", CAPTIONS[0]),
        ("Show me the failed backups by month", CAPTIONS[0]),
        ("Figure 2 please, when do backups run?", CAPTIONS[1]),
    ],
)
async def test_a_text_answer_is_accompanied_by_its_figure(world: World, question: str, caption: str) -> None:
    """Shows it also for "show me" without naming a figure."""
    answer = await world.answering().answer(world.question(question))
    assert not answer.text.startswith(WORDS.figures_lead(1))
    assert [one.caption for one in answer.figures] == [caption]


async def test_show_me_with_one_word_requests_no_figure(world: World) -> None:
    """Backups can be shown in many ways."""
    answer = await world.answering().answer(world.question("Show me the backups"))
    assert answer.figures == ()


async def test_the_named_document_decides_the_figure() -> None:
    """Two editions have a figure with the same number and caption."""
    files = ("backups_v02.pdf", "backups_v03.pdf")
    shelf = Shelf([make_passage(TEXT, file=file) for file in files], [make_figure(CAPTIONS[0])])
    world = World(replace(shelf, illustrated=files), Register())
    for file in files:
        edition = file.removesuffix(".pdf").rpartition("_")[2]
        answer = await world.answering().answer(world.question(f"show me figure 1 from {edition}"))
        assert [one.file for one in answer.citations] == [file]


@pytest.mark.parametrize(
    ("question", "caption"),
    [
        ("Show me a picture of the growth of the tape store over time", "Tape store, 2021 to 2024"),
        ("Show me a picture of the tape store", "The tape store"),
    ],
)
async def test_a_question_for_numbers_gets_a_figure_with_data(question: str, caption: str) -> None:
    """A photograph with a better matching caption ranks below a chart."""
    photo = replace(make_figure("The tape store"), holds_data=False)
    world = World(Shelf([make_passage(TEXT)], [photo, make_figure("Tape store, 2021 to 2024")]), Register())
    answer = await world.answering().answer(world.question(question))
    assert [one.caption for one in answer.figures] == [caption]


async def test_a_quote_inside_a_figure_does_not_attach_it() -> None:
    """The figure may be the whole page; only a sentence that refers to it brings it."""
    page = replace(make_figure("", BACKUPS), box=Box(0, 0, 1, 1))
    world = World(Shelf([make_passage(TEXT)], [page]), Register())
    answer = await world.answering().answer(world.question("When do backups run?"))
    assert answer.citations
    assert answer.figures == ()


async def test_each_figure_belongs_to_the_sentence_that_names_it() -> None:
    """Figures are shown with their sentences, in the order of the quotes."""
    figures = [make_figure(caption) for caption in CAPTIONS[:2]]
    world = World(Shelf([make_passage(TEXT)], figures), Register())
    answer = await world.answering().answer(world.question("Show me all charts"))
    quoted = {one.number: one.quote for one in answer.citations}
    shown = {one.caption: quoted[one.number] for one in answer.figures}
    assert shown == {caption: caption for caption in CAPTIONS[:2]}


async def test_several_figures_are_shown_for_a_plural(world: World) -> None:
    """A plural gets three figures at most."""
    answer = await world.answering().answer(world.question("Show me all charts"))
    assert len(answer.figures) == 3
    assert answer.text.startswith(WORDS.figures_lead(3))


@pytest.mark.parametrize(
    "question", ["Show me the pie chart of failed backups", "Show me figure 7", "Show me the map of Spain"]
)
async def test_a_mismatching_figure_is_never_shown(world: World, question: str) -> None:
    """Covers another kind, number and subject."""
    answer = await world.answering().answer(world.question(question))
    assert answer.figures == ()


async def test_a_text_question_gets_no_figure(world: World) -> None:
    """Shows it although the figures are in the cited chunk."""
    answer = await world.answering().answer(world.question("When do backups run?"))
    assert (answer.state, answer.figures) == (AnswerState.PASSAGES, ())
    assert answer.citations[0].quote == "Backups run daily at 2:00 AM."


async def test_a_figure_named_by_the_cited_sentence_is_attached(world: World) -> None:
    """The figure shows the subject of the question, so it accompanies the text."""
    world.shelf.figures[0] = replace(world.shelf.figures[0], text="Tape lost in winter")
    answer = await world.answering().answer(world.question("Which tape was lost in winter?"))
    assert NAMING in answer.citations[0].quote
    assert [one.caption for one in answer.figures] == [CAPTIONS[0]]


async def test_an_unspecific_request_gets_no_figure(world: World) -> None:
    """A bare "graph" identifies no figure, but a question with a figure number does."""
    answer = await world.answering().answer(world.question("What does the graph tell?"))
    assert answer.figures == ()
    answer = await world.answering().answer(world.question("What is shown in figure 2?"))
    assert [one.caption for one in answer.figures] == [CAPTIONS[1]]


@pytest.mark.parametrize(
    "question", ["Image backup retention period", "Is there an image retention period?", "Backup plot twist"]
)
async def test_an_ambiguous_figure_word_does_not_replace_text(world: World, question: str) -> None:
    """Shows the same for a heading with the words of the question."""
    retention = "Backups of an image have a retention period of 30 days."
    screenshot = replace(make_figure("Figure 9. Dialog"), heading_path=("Image backup", "Retention period"))
    world = World(Shelf([make_passage(f"{TEXT}\n{retention}")], [screenshot]), Register())
    answer = await world.answering().answer(world.question(question))
    assert answer.figures == ()


@for_each(
    ("quote", "caption", "speaks"),
    [
        ("See Figure 3 and the table.", "Figure 3. Costs", True),
        ("Figures 1, 2 and 3 show it.", "Fig. 3: Costs", True),
        ("Costs of the servers by month", "Figure 3. Costs of the servers by month", True),
        ("Costs", "Figure 3. Costs of the servers by month", False),
        ("The chart 3 shows it.", "Step 3 of the process", False),
    ],
)
def test_a_sentence_refers_to_a_figure_by_number_or_caption(quote: str, caption: str, speaks: bool) -> None:
    """A single word of the caption may occur anywhere."""
    assert speaks_of(quote, caption) is speaks


async def test_figures_do_not_displace_passages() -> None:
    """Shows it with more figures than passages."""
    texts = [make_passage(f"Rule {number} of the office.", ordinal=number) for number in range(60)]
    rules = [make_figure("Office rule", str(number)) for number in range(90)]
    world = World(Shelf(texts, rules), Register())
    asked = world.question("office rule")
    retrieval = await HybridRetriever(world.shelf, HashEmbedder(), AnswerSettings()).retrieve(asked)
    bare = await HybridRetriever(Shelf(texts), HashEmbedder(), AnswerSettings()).retrieve(asked)
    assert len(retrieval.figures) == 90
    assert [one.ordinal for one in retrieval.passages] == [one.ordinal for one in bare.passages]
    assert all(one.ordinal < make_publication().chunks for one in retrieval.passages)


async def test_a_figure_of_a_page_without_text_is_marked(world: World) -> None:
    """The figure belongs to no chunk, so there is nothing to quote."""
    world.shelf.figures[0] = replace(world.shelf.figures[0], chunk=None)
    answer = await world.answering().answer(world.question("Show me the chart of failed backups"))
    assert [one.boxes for one in answer.citations] == [(BOX,)]


@for_each(
    ("question", "wants"),
    [
        ("What does the chart of emissions say about 2020?", False),
        ("Emissions chart", True),
        ("Is there a diagram of the network?", True),
        ("Which chart shows the emissions?", True),
        ("Can you show me the organisation diagram?", True),
        ("Zeige mir das Diagramm der Emissionen", True),
        ("What are the sales figures?", None),
        ("How do I figure out my limit?", None),
        ("Show me the rules on charters", False),
        ("Image backup retention period", False),
        ("Is there an image retention period?", False),
        ("How do I map a network drive?", False),
        ("Map of the campus", False),
        ("Campus map", True),
        ("Show me the map of the campus", True),
    ],
)
def test_figure_questions_are_recognized(question: str, wants: bool | None) -> None:
    """Lookalikes such as "figure" for a number request none."""
    asked = figure_question(question)
    assert (asked.wants_it if asked else None) is wants


TABLE = "| Grade | Days |\n|---|---|\n| Junior | 20 |\n| Senior | 25 |"
LEAVE = f"Leave is granted by grade.\nTable 1. Leave by grade\n{TABLE}\nLeave is asked for in writing."


@pytest.mark.parametrize("heading_path", [("2 Leave",), ()])
async def test_a_question_for_a_table_shows_it(heading_path: tuple[str, ...]) -> None:
    """The figure covers the table's words and caption, next to the quote of its rows."""
    world = World(Shelf([make_passage(LEAVE, heading_path=heading_path)]), Register())
    answer = await world.answering().answer(world.question("Show me the table of leave by grade"))
    (table,) = answer.figures
    assert (table.caption, table.page, table.number) == ("Table 1. Leave by grade", 1, 1)
    words = place_words(LEAVE, ((0, 1),))
    start, end = LEAVE.index("| Grade"), LEAVE.index("\nLeave is asked")
    inside = [one.box for one in words if start <= one.start < end]
    edges = (min(b.x0 for b in inside), min(b.y0 for b in inside), max(b.x1 for b in inside))
    assert table.box[:3] == pytest.approx(edges, abs=0.01)
    assert all(table.box.x0 <= b.x0 and b.y1 <= table.box.y1 for b in inside)
    assert not [one for one in words if one.start < start and one.box.y1 > table.box.y0 + 0.01]


async def test_a_table_without_a_caption_is_named_by_its_section() -> None:
    """A table without caption and section is quoted by its rows only."""
    text = LEAVE.replace("Table 1. Leave by grade\n", "")
    for heading_path, captions in ((("2 Leave", "2.1 Grades"), ["2.1 Grades"]), ((), [])):
        world = World(Shelf([make_passage(text, heading_path=heading_path)]), Register())
        world.judge = Judge(answer_probability=0)
        answer = await world.answering().answer(world.question("Show me the table of leave by grade"))
        assert [one.caption for one in answer.figures] == captions
        assert "Senior" in answer.text


async def test_a_row_that_answers_attaches_no_figure() -> None:
    """A question for a value gets only the value."""
    world = World(Shelf([make_passage(LEAVE)]), Register())
    answer = await world.answering().answer(world.question("How many days of leave has the grade Senior?"))
    assert answer.figures == ()
