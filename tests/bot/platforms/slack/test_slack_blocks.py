"""Rendering of answers as Slack messages: within Block Kit's limits, and safe for any model output."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from engines.support.slack_judges import message_faults
from fakes.core import WORDS
from hypothesis import example, given
from hypothesis import strategies as st

from bot.core.models import (
    Answer,
    AnswerFigure,
    AnswerState,
    AppliedFilter,
    Citation,
    CitedPage,
    Correction,
    Language,
    NearestPage,
    SourceChange,
)
from bot.core.wording import reply_words
from bot.platforms.slack.blocks import render
from storage.models import Box

LINK = "https://footnote.example/v/"
HOSTILE = st.lists(
    st.sampled_from(
        [
            "<!channel>",
            "<!here|x>",
            "<@U123>",
            "<#C1>",
            "<!subteam^S1>",
            "<https://evil.example|click>",
            "http://evil.example/?q=",
            "www.evil.com",
            "evil.com/leak",
            "https:\u200b//evil.example",
            "![x](http://evil.example)",
            "[a](b)",
            "&",
            "<",
            ">",
            "\u202e",
            "mailto:a@evil.com",
            "\ud800",
            "😀" * 50,
            "word " * 300,
            "[1]",
            "\n",
        ]
    )
    | st.text(max_size=40),
    max_size=30,
).map("".join)


def cited(number: int, title: str = "Backups", file: str = "sop.pdf", page: int | None = None) -> Citation:
    """Return a citation with its link."""
    return Citation(number, title, file, page or number, "quote", (), f"{LINK}{number}")


def mark(number: int) -> str:
    """Return a text's [n] as a link to its quote."""
    return f"<{LINK}{number}|[{number}]>"


def shown_figure(page: int, caption: str) -> AnswerFigure:
    """Return a figure with its links."""
    url, image = f"{LINK}figure-{page}", f"{LINK}image-{page}"
    return AnswerFigure("sop.pdf", page, caption, Box(0, 0, 1, 1), url, image, page)


def answer(text: str, citations: tuple[Citation, ...] = (), **others: Any) -> Answer:
    """Return a grounded answer."""
    return Answer(AnswerState.GROUNDED, text, citations, **others)


def strings(value: Any) -> list[str]:
    """Return all strings of a payload that a client shows as text, without URLs."""
    if isinstance(value, dict):
        return [text for key, child in value.items() if key != "url" for text in strings(child)]
    if isinstance(value, list | tuple):
        return [text for child in value for text in strings(child)]
    return [value] if isinstance(value, str) else []


def links(value: Any) -> list[str]:
    """Return all URLs in a payload."""
    if isinstance(value, dict):
        own = [value["url"]] if "url" in value else []
        return own + [url for child in value.values() for url in links(child)]
    return [url for child in value for url in links(child)] if isinstance(value, list | tuple) else []


@given(HOSTILE, st.lists(HOSTILE, max_size=14))
@example("www.evil.com http://x.example <!channel>", ["https://evil|Report.pdf"])
@example("", ["<!channel>&&[1]000000000000000000000www.evil.com<https://evil.example|click>"])
def test_only_our_own_links_are_rendered_for_any_text(text: str, titles: list[str]) -> None:
    """No mention, control sequence, image or foreign link appears in text, labels or notifications."""
    citations = tuple(cited(n, title, f"{title}.pdf") for n, title in enumerate(titles, start=1))
    figures = tuple(shown_figure(n, title) for n, title in enumerate(titles[:3]))
    message = render(answer(text, citations, figures=figures), 5, {n: f"F0{n}" for n in range(len(figures))})
    shown = re.sub(rf"<{LINK}\d+\|(\[\d+\])>", r"\1", "\n".join([message.text, *strings(message.blocks)]))
    assert not re.search(r"[<>]|[\u200b\u202e\ud800]", shown)
    texts = [block["text"] for block in message.blocks if block["type"] == "section"]
    assert all(text["type"] == "plain_text" or text["verbatim"] for text in texts)
    assert set(links(message.blocks)) == {source.url for source in (*citations, *figures)}


@given(HOSTILE, st.lists(HOSTILE, max_size=40), st.integers(1, 10))
def test_every_message_is_within_the_limits_of_block_kit(text: str, titles: list[str], shown: int) -> None:
    """Every block passes the validators; the message stays below the size that Slack was seen to refuse."""
    citations = tuple(cited(n, title, f"{n}.pdf") for n, title in enumerate(titles, start=1))
    blocks = list(render(answer(text * 20, citations), shown).blocks)
    assert blocks
    assert message_faults(blocks) == []
    assert sum(len(block["elements"]) for block in blocks if block["type"] == "actions") <= shown


def test_only_the_headings_of_passages_are_bold() -> None:
    """A mrkdwn mark in a title neither opens nor closes bold text; the notification has no marks."""
    place = "R&D *Travel*, p. 5 · Hotels"
    found = answer(f"{place}\n“*Stay* cheap.” [1]", (cited(1),), headings=(place,))
    message = render(found, 5)
    shown = message.blocks[0]["text"]["text"]
    assert shown == f"*R&amp;D ∗Travel∗, p. 5 · Hotels*\n“*Stay* cheap.” {mark(1)}"
    assert message.text.startswith("R&amp;D *Travel*, p. 5 · Hotels\n")


def test_a_long_heading_is_never_split_between_blocks() -> None:
    """Each bold line ends in the block that it starts in, however long the previous text is."""
    place = "Travel Expense Policy " * 10
    places = [f"{place}{n}" for n in range(30)]
    found = answer("\n".join(f"{one}\n{'word ' * 40}" for one in places), headings=tuple(places))
    texts = [block["text"]["text"] for block in render(found, 5).blocks]
    assert len(texts) > 2
    assert all(text.count("*") % 2 == 0 for text in texts)


def test_a_figure_follows_the_line_that_refers_to_it() -> None:
    """A figure without such a line follows the text; one that was not uploaded has only its button."""
    figures = [shown_figure(page, caption) for page, caption in ((2, "Backups"), (9, ""), (1, "Gone"))]
    citations = (cited(1), cited(2), cited(3))
    text = "Two charts:\nBackups by day. [2] See below.\nAnd more. [1][3]"
    message = render(answer(text, citations, figures=tuple(figures)), 5, {0: "F0A", 1: "F0B"})
    kinds = [block["type"] for block in message.blocks]
    assert kinds == ["section", "image", "section", "image", "actions"]
    first, picture, second, last, row = message.blocks
    assert first["text"]["text"] == f"Two charts:\nBackups by day. {mark(2)} See below."
    assert second["text"]["text"] == f"And more. {mark(1)}{mark(3)}"
    assert (picture["slack_file"], picture["alt_text"]) == ({"id": "F0A"}, "Backups")
    assert (last["slack_file"], last["alt_text"]) == ({"id": "F0B"}, WORDS.figure_unnamed(page=9))
    assert picture["title"]["text"] == WORDS.source_label(2, "Backups")
    assert len({picture["block_id"], last["block_id"]}) == 2
    assert len(row["elements"]) == 6


def test_figures_fit_the_limits_however_long_the_text() -> None:
    """Text is shortened in favour of figures and sources; figures whose line was cut come last."""
    figures = tuple(shown_figure(page, "A long caption " * 200) for page in (1, 2, 3))
    text = "\n".join(f"{'word ' * 900}[{n}]" for n in range(1, 4))
    message = render(answer(text, tuple(map(cited, range(1, 4))), figures=figures), 5, dict(enumerate("ABC")))
    blocks = list(message.blocks)
    assert message_faults(blocks) == []
    assert sum(block["type"] == "image" for block in blocks) == 3


def test_each_cited_page_has_one_button_with_its_own_action() -> None:
    """Two citations on one page share a button; the label names page and title."""
    message = render(answer("a [1] b [2] c [3]", (cited(1, page=4), cited(2, page=4), cited(3, page=9))), 5)
    section, actions = message.blocks
    assert section["text"] == {
        "type": "mrkdwn",
        "text": f"a {mark(1)} b {mark(2)} c {mark(3)}",
        "verbatim": True,
    }
    assert [button["text"]["text"] for button in actions["elements"]] == [
        "[1][2] p. 4 · Backups",
        "[3] p. 9 · Backups",
    ]
    assert [button["action_id"] for button in actions["elements"]] == ["source-1", "source-2"]
    assert [button["url"] for button in actions["elements"]] == [f"{LINK}1", f"{LINK}3"]


def test_only_the_numbers_of_citations_are_links() -> None:
    """Shows that a number without a citation, and one inside a quote, stay text."""
    (section, *_) = render(answer("[1] [2] [1234] [01] <https://evil.example|[1]>", (cited(1),)), 5).blocks
    assert section["text"]["text"] == (
        f"{mark(1)} [2] [1234] <{LINK}1|[01]> &lt;`https://evil.example`|{mark(1)}&gt;"
    )


def test_a_link_in_the_text_is_never_too_long() -> None:
    """Shows that a web link drops its text fragment if too long, and that a still longer one becomes text."""
    page = "https://example.org/a b|c"
    near, far = (
        replace(cited(n), url=f"{page}{'x' * length}#:~:text={'word ' * 200}")
        for n, length in ((1, 0), (2, 999))
    )
    (section, *_) = render(answer("[1] [2]", (near, far)), 5).blocks
    assert section["text"]["text"] == "<https://example.org/a%20b%7Cc|[1]> [2]"


def test_text_takes_precedence_over_links() -> None:
    """Shows that a text with too many citation marks keeps all words and the first link of each number."""
    words = "So it is. [1] [2] " * 100
    longer = tuple(replace(cited(n), url=f"{LINK}{'x' * 120}{n}") for n in (1, 2))
    parts = [block["text"]["text"] for block in render(answer(words, longer), 5).blocks[:-1]]
    assert " ".join(parts).count("So it is.") == 100
    assert "".join(parts).count("<") == 2
    assert all(len(part) <= 3000 for part in parts)


def test_pages_beyond_the_buttons_are_in_an_overflow_menu() -> None:
    """Five of eight cited pages have buttons; the other three are in an overflow menu that says so."""
    message = render(answer("…", tuple(cited(n) for n in range(1, 9))), 5)
    menu = message.blocks[-1]
    assert menu["text"]["text"] == WORDS.more_sources(3)
    assert [option["url"] for option in menu["accessory"]["options"]] == [f"{LINK}{n}" for n in (6, 7, 8)]


def test_a_label_is_cut_to_a_buttons_limit() -> None:
    """Slack refuses labels over 75 characters; the page number is kept."""
    message = render(answer("x [1]", (cited(1, "A very long title " * 20),)), 5)
    label = message.blocks[-1]["elements"][0]["text"]["text"]
    assert label.startswith("[1] p. 1 · A very long")
    assert len(label) <= 75


def test_the_notification_names_cited_pages_in_text() -> None:
    """The notification text contains the answer and ``Page N of file.pdf``."""
    message = render(answer("Daily [1].", (cited(1, file="it/sop.pdf", page=2),)), 5)
    assert message.text == f"Daily [1].\n[1] {WORDS.page_of(page=2, file='sop.pdf')}"


def test_a_long_answer_is_truncated_but_keeps_its_sources() -> None:
    """Sources are counted first in the size budget, so truncation never drops one."""
    citations = tuple(cited(n) for n in range(1, 21))
    message = render(answer("A sentence that goes on [1]. " * 1000, citations), 5)
    assert message.blocks[-5]["type"] == "section"
    assert len(links(message.blocks)) == 20
    words = [b["text"]["text"] for b in message.blocks if b.get("text", {}).get("type") == "mrkdwn"]
    assert words[-1].endswith(WORDS.cut_short)
    assert all(len(part) <= 3000 for part in words)


def test_not_found_offers_the_closest_page() -> None:
    """The closest page has a button although it is no citation."""
    nearest = NearestPage("it/sop.pdf", 3, f"{LINK}near", "sop.pdf")
    message = render(Answer(AnswerState.NOT_FOUND, WORDS.not_found, nearest=nearest), 5)
    (button,) = message.blocks[-1]["elements"]
    assert (button["text"]["text"], button["url"]) == ("p. 3 · sop.pdf", f"{LINK}near")


def test_each_figures_button_names_its_page() -> None:
    """Figure buttons follow the sources; the notification has the full captions."""
    figures = (shown_figure(4, "Emissions by year"), shown_figure(112, "A long caption " * 20))
    message = render(answer("Here. [1]", (cited(1),), figures=figures), 5)
    labels = [button["text"]["text"] for button in message.blocks[-1]["elements"]][1:]
    assert labels[0] == WORDS.figure_label("Emissions by year", 4)
    assert "A long caption" in labels[1]
    assert "112" in labels[1]
    assert len(labels[1]) <= 75
    assert links(message.blocks)[1:] == [one.url for one in figures]
    assert labels[0] in message.text


def test_labels_are_in_the_answers_language() -> None:
    """Shows labels, the overflow menu and the line above the answer in German."""
    sources = tuple(map(cited, range(1, 9)))
    message = render(answer("Täglich. [1]", sources, language=Language.GERMAN, standalone="Wann?"), 5)
    german = reply_words(Language.GERMAN)
    said = json.dumps(message.blocks, ensure_ascii=False)
    assert german.understood(question="Wann?") in said
    assert german.more_sources(3) in said
    assert german.source_label(1, "Backups") in said
    assert german.page_of(page=1, file="sop.pdf") in message.text


def test_a_failure_is_a_sentence_without_buttons() -> None:
    """A failed answer has nothing to open."""
    message = render(Answer(AnswerState.FAILED, WORDS.engine_failed), 5)
    assert [block["type"] for block in message.blocks] == ["section"]


def test_the_standalone_question_is_shown_and_escaped() -> None:
    """A follow-up shows the standalone question above its answer; a plain question has no such line."""
    answer = Answer(
        AnswerState.GROUNDED, "25 days [1].", (cited(1),), standalone="<!channel> " + "why? " * 100
    )
    first, second, *_ = render(answer, 5).blocks
    (line,) = first["elements"]
    assert (first["type"], second["type"]) == ("context", "section")
    assert line["type"] == "plain_text"
    assert line["text"].startswith(WORDS.understood(question="‹!channel› why? why?"))
    assert len(line["text"]) <= 300
    assert render(replace(answer, standalone=""), 5).blocks[0]["type"] == "section"


def test_a_corrected_word_is_shown_above_the_answer() -> None:
    """Shows the corrected words as plain text below the standalone question."""
    corrections = (Correction("bakcups", "backups"),)
    mistyped = Answer(AnswerState.NOT_FOUND, "No.", standalone="Why bakcups?", corrections=corrections)
    first, *_ = render(mistyped, 5).blocks
    said = [(line["type"], line["text"]) for line in first["elements"]]
    assert said == [
        ("plain_text", "Searching for: Why bakcups?"),
        ("plain_text", "Spelling corrected: backups"),
    ]


def test_applied_filters_are_shown_above_the_answer() -> None:
    """Filters are plain text in the same place as corrections."""
    applied = AppliedFilter(("SOPs, from 2023-01-01 on",), 2, by_arrival=1)
    first, *_ = render(Answer(AnswerState.NOT_FOUND, "No.", filter=applied), 5).blocks
    assert [(line["type"], line["text"]) for line in first["elements"]] == [
        (
            "plain_text",
            "I only looked in 2 documents: SOPs, from 2023-01-01 on (1 has no date, so I used the day it was "
            "added)",
        )
    ]


def test_a_list_of_documents_keeps_its_lines_and_gets_no_buttons() -> None:
    """Shows that a reply without sources is one section, with one bullet per line."""
    text = "I know 2 documents in this channel:\n• R&D · 2 pages\n• sop_it_04.pdf · 1 page"
    message = render(Answer(AnswerState.CHAT, text), 5)
    (section,) = message.blocks
    assert section["text"]["text"] == text.replace("&", "&amp;")
    assert message.text == section["text"]["text"]


def test_source_changes_are_shown_above_the_answer() -> None:
    """Shows a line with a button above the answer, and one without where there is no page.

    Both are escaped, whatever a document is called.
    """
    page = CitedPage((1,), "p. 5 · <Handbook>", "Page 5 of h.pdf", f"{LINK}new")
    changes = (
        SourceChange("“<!channel>” was updated on 2026-11-02:", page),
        SourceChange("“B” was removed.", None),
    )
    message = render(answer("Daily [1].", (cited(1),)), 5, changes=changes)
    moved, gone, words = message.blocks[:3]
    assert moved["text"]["text"] == "⚠️ “&lt;!channel&gt;” was updated on 2026-11-02:"
    assert (moved["accessory"]["url"], moved["accessory"]["text"]["text"]) == (
        f"{LINK}new",
        "[1] p. 5 · ‹Handbook›",
    )
    assert "accessory" not in gone
    assert words["text"]["text"] == f"Daily {mark(1)}."
    assert message.text.startswith("“&lt;!channel&gt;” was updated on 2026-11-02:\n“B” was removed.\nDaily")
    assert message_faults(message.blocks) == []


def test_people_to_ask_are_mentioned() -> None:
    """Shows the only mentions in a reply: their ids come from settings and uploads."""
    answer = Answer(AnswerState.CHAT, "Ask:", people=("slack:T1:U1", "slack:T1:U2"))
    context = [one for one in render(answer, 5).blocks if one["type"] == "context"]
    assert context == [{"type": "context", "elements": [{"type": "mrkdwn", "text": "<@U1> <@U2>"}]}]
