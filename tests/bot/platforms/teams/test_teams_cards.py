"""Rendering of answers as Teams messages: native citations, buttons, and escaping of any model output."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import Any

import pytest
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
from bot.platforms.teams.cards import render, render_card
from bot.platforms.teams.connector import card_activity, text_activity
from storage.models import Box

LINK = "https://footnote.example/v/"
HOSTILE = st.lists(
    st.sampled_from(
        [
            "<at>Everyone</at>",
            "<a href='http://evil.example'>x</a>",
            "<img src=x>",
            "![x](http://evil.example/q)",
            "[a](b)",
            "[1](http://evil.example)",
            "[1]: http://evil.example",
            "[1][2]",
            "http://evil.example/?q=",
            "www.evil.com",
            "https:\u200b//evil.example",
            "# ",
            "`",
            "**",
            "~~",
            "|",
            "\\",
            "\u202e",
            "\ud800",
            "&",
            "<",
            "\n",
            "[1]",
            "[2]",
            "word " * 300,
        ]
    )
    | st.text(max_size=40),
    max_size=30,
).map("".join)


def cited(number: int, title: str = "Backups", file: str = "sop.pdf", **others: Any) -> Citation:
    """Return a citation with its link."""
    values = {"page": number, "quote": f"quote {number}", "url": f"{LINK}{number}"} | others
    return Citation(number, title, file, boxes=(), **values)


def answer(text: str, *citations: Citation) -> Answer:
    """Return a grounded answer."""
    return Answer(AnswerState.GROUNDED, text, citations)


@given(HOSTILE, st.lists(HOSTILE, max_size=12))
@example(
    "[1](http://evil.example) [1]: http://evil.example <at>x</at> ![i](x)", ["![x](http://evil.example)"]
)
@example("\\http://evil.example/?q=", [])
def test_only_our_own_links_are_rendered_for_any_text(text: str, titles: list[str]) -> None:
    """No HTML, mention, link, reference or image in the text, and no foreign link anywhere."""
    message = render(answer(text, *(cited(n, t, f"{t}.pdf") for n, t in enumerate(titles, start=1))))
    assert not re.search(
        r"<|(?<!\\)\]\(|(?<!\\)\]:|(?<!\\)\]\[|://|www\.\w|[\u200b\u202e\ud800]",
        re.sub(rf"(?<!\\)`[^`\n]+`|\]\({LINK}[^)]*\)", "", message.text),
    )
    open_brackets = re.sub(
        r"\\.", "", re.sub(rf"(?<!\\)`[^`\n]+`|\[[^\n]*?\]\({LINK}[^)]*\)", "", message.text)
    )
    assert re.sub(r"\[\d{1,3}\]", "", open_brackets).count("[") == 0
    text_activity(message)


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"]), max_size=200))
def test_escaping_loses_no_text(text: str) -> None:
    """Unescaping like a Markdown reader restores the original text."""
    message = render(answer(f"x{text}x"))
    parts = re.split(r"(?<!\\)`([^`\n]+)`", message.text)
    plain = [html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", one)) for one in parts[::2]]
    read = "".join(part for pair in zip(plain, [*parts[1::2], ""], strict=True) for part in pair)
    assert read.replace("\u2060", "") == f"x{text}x"


def test_each_mark_has_its_native_citation() -> None:
    """The entity contains position, name, abstract and signed link."""
    message = render(answer("Daily [1], kept [2].", cited(1, page=4), cited(2, page=9)))
    (entity,) = text_activity(message)["entities"]
    assert entity["type"] == "https://schema.org/Message"
    first, second = entity["citation"]
    assert (first["position"], second["position"]) == (1, 2)
    assert first["appearance"]["name"] == "p. 4 · Backups"
    assert first["appearance"]["abstract"] == "quote 1"
    assert first["appearance"]["url"] == f"{LINK}1"


def test_citations_keep_the_platforms_limits() -> None:
    """Ten citations at most, names of 80 and abstracts of 160 characters, none of them empty."""
    marks = " ".join(f"[{n}]" for n in range(1, 15))
    citations = [cited(n, "long title " * 20, quote="" if n == 2 else "words " * 100) for n in range(1, 15)]
    claims = render(answer(marks, *citations)).citations
    assert [claim["position"] for claim in claims] == list(range(1, 11))
    assert all(0 < len(claim["appearance"]["name"]) <= 80 for claim in claims)
    assert all(0 < len(claim["appearance"]["abstract"]) <= 160 for claim in claims)


def test_numbers_beyond_the_native_citations_are_links() -> None:
    """Shows that Teams' limit of ten leaves no [n] without a source: the 11th and 12th are links."""
    citations = [cited(n, url=f"{LINK}{n}_(a)") for n in range(1, 13)]
    message = render(answer(" ".join(f"[{n}]" for n in range(1, 13)), *citations))
    assert rf"[10] [\[11\]]({LINK}11_%28a%29) [\[12\]]({LINK}12_%28a%29)" in message.text


def test_each_cited_page_has_one_button_up_to_the_limit() -> None:
    """Five buttons are visible; three more pages are in a ShowCard. A text links all on one line."""
    found = answer("x", *(cited(n) for n in range(1, 9)))
    links = render(found).text.split("\n\n")[1].split(" • ")
    assert links == [rf"[\[{n}\] p. {n} · Backups]({LINK}{n})" for n in range(1, 9)]
    _, *rows = render_card(found, 5)["body"]
    actions = [row["actions"][0] for row in rows]
    assert [action["title"] for action in actions[:2]] == ["[1] p. 1 · Backups", "[2] p. 2 · Backups"]
    assert [action["type"] for action in actions] == ["Action.OpenUrl"] * 5 + ["Action.ShowCard"]
    hidden = [row["actions"][0]["url"] for row in actions[5]["card"]["body"]]
    assert (actions[5]["title"], hidden) == (WORDS.more_sources(3), [f"{LINK}{n}" for n in (6, 7, 8)])


def test_each_figure_has_a_link_after_the_sources() -> None:
    """The label names the page, however long the caption."""
    figure = AnswerFigure(
        "sop.pdf", 7, "A long caption " * 20, Box(0, 0, 1, 1), f"{LINK}figure", f"{LINK}image"
    )
    message = render(replace(answer("x [1]", cited(1)), figures=(figure,)))
    _, link = message.text.split(" • ")
    assert ("7" in link, link.endswith(f"]({LINK}figure)")) == (True, True)
    assert "7" in message.card_summary
    assert render(replace(answer("x"), figures=(figure,))).card


def test_each_figure_is_a_picture_on_a_card() -> None:
    """Teams loads it by its signed link; the alt text is the caption, or else the page."""
    named, unnamed = (
        AnswerFigure(
            "sop.pdf", page, caption, Box(0, 0, 1, 1), f"{LINK}figure{page}", f"{LINK}image{page}", 1
        )
        for page, caption in ((7, "Failed *backups* by month"), (8, ""))
    )
    card = render(replace(answer("x [1]", cited(1)), figures=(named, unnamed))).card
    assert card
    pictures = [block for block in card["body"] if block["type"] == "Image"]
    assert [(one["url"], one["altText"]) for one in pictures] == [
        (f"{LINK}image7", "Failed *backups* by month"),
        (f"{LINK}image8", WORDS.figure_unnamed(page=8)),
    ]
    kinds = [block["type"] for block in card["body"]]
    assert kinds == ["Image", "RichTextBlock"] * 2
    assert card["body"][1]["inlines"][0]["text"] == WORDS.source_label(7, "Failed *backups* by month")


def test_text_and_card_never_share_an_activity() -> None:
    """Teams would split them, return no id and refuse the update; without pictures there is no card."""
    found = answer("Daily [1].", cited(1))
    assert render(found).card is None
    assert "attachments" not in text_activity(render(found))
    assert "text" not in card_activity(render_card(found, 5), "")


def test_a_long_answer_is_truncated_but_keeps_its_sources() -> None:
    """Sources follow the text, so truncating it drops none."""
    message = render(answer("A sentence [1]. " * 2000, *(cited(n) for n in range(1, 9))))
    text, sources = message.text.split("\n\n")
    assert text.endswith(WORDS.cut_short)
    assert sources.count(LINK) == 8


def test_not_found_offers_the_closest_page_and_a_failure_none() -> None:
    """The closest page has a link although it is no citation; a failure has no card."""
    nearest = NearestPage("it/sop.pdf", 3, f"{LINK}near", "sop.pdf")
    text = render(Answer(AnswerState.NOT_FOUND, WORDS.not_found, nearest=nearest)).text
    assert text.endswith(f"[p. 3 · sop.pdf]({LINK}near)")
    assert render(Answer(AnswerState.FAILED, WORDS.engine_failed)).card is None


def test_the_standalone_question_is_shown_and_escaped() -> None:
    """Markup and [n] in it are escaped; a plain question has no such line."""
    answer = Answer(AnswerState.GROUNDED, "25 days.", standalone="*Why* [1] http://evil.example?")
    text = render(answer).text
    line, rest = text.split("\n\n")
    assert line.startswith(WORDS.understood(question="\\*Why\\* \\[1\\]"))
    assert "`http://evil.example`" in line
    assert rest == "25 days."
    assert render(replace(answer, standalone="")).text == "25 days."


def test_a_corrected_word_is_shown_above_the_answer() -> None:
    """Shows the corrected words, escaped, in a paragraph of their own."""
    mistyped = Answer(AnswerState.NOT_FOUND, "No.", corrections=(Correction("*bakcups", "*backups"),))
    assert render(mistyped).text == "Spelling corrected: \\*backups\n\nNo."


def test_applied_filters_are_shown_above_the_answer() -> None:
    """Filters are escaped, in the same place as corrections."""
    applied = AppliedFilter(("not: *drafts",), 0)
    text = render(Answer(AnswerState.NOT_FOUND, "No.", filter=applied)).text
    assert text == "No document matches, so I looked in all of them: not: \\*drafts\n\nNo."


def test_labels_are_in_the_answers_language() -> None:
    """Shows labels and the line above the answer in French."""
    many = answer("Tous les jours. [1]", *(cited(number, page=number) for number in range(1, 9)))
    message = render(replace(many, language=Language.FRENCH, standalone="Quand ?"))
    french = reply_words(Language.FRENCH)
    assert message.text.startswith(french.understood(question="Quand ?"))
    assert french.source_label(8, "Backups") in message.text


def test_the_headings_of_passages_are_bold_and_separated() -> None:
    """Teams drops empty Markdown lines, so a paragraph with one space separates the passages."""
    places = ("R&D *Travel*, p. 5 · Hotels", "Handbook, p. 2")
    text = f"{places[0]}\n“Stay cheap.” [1]\n\n{places[1]}\n“Stay put.” [2]"
    found = replace(answer(text, cited(1), cited(2)), headings=places)
    assert render(found).text.split("\n\n")[:-1] == [
        r"**R&amp;D \*Travel\*, p. 5 · Hotels**",
        "“Stay cheap.” [1]",
        "&nbsp;",
        "**Handbook, p. 2**",
        "“Stay put.” [2]",
    ]
    runs = [one["inlines"][0] for one in render_card(found, 5)["body"] if one["type"] == "RichTextBlock"]
    assert [one["text"] for one in runs if one.get("weight") == "Bolder"] == list(places)


def test_steps_keep_their_lines_and_numbers() -> None:
    """Shows that numbered lines of a quote do not become a Markdown list, detached from the first."""
    message = render(answer("“1. Stop.\n2. Wait.\n- Go.\n7.2 Come.” [1]", cited(1)))
    lines = message.text.split("\n\n")[:-1]
    assert lines == ["“**1.** Stop.", "**2.** Wait.", r"\- Go.", "7.2 Come.” [1]"]


def test_a_list_of_documents_keeps_its_lines_and_gets_no_card() -> None:
    """Shows that each bullet is a paragraph of its own without markup."""
    text = "I know 2 documents in this channel:\n• R&D · 2 pages\n• sop_it_04.pdf · 1 page"
    message = render(Answer(AnswerState.CHAT, text))
    lines = ["I know 2 documents in this channel:", "• R&amp;D · 2 pages", r"• sop\_it\_04.pdf · 1 page"]
    assert message.text == "\n\n".join(lines)
    assert (message.card, message.citations) == (None, ())


def test_source_changes_are_shown_above_the_answer() -> None:
    """Shows an escaped line with a link above the answer, because a text has no buttons."""
    page = CitedPage((1,), "p. 5 · *Handbook*", "Page 5 of h.pdf", "https://f.example/v/(new)")
    changes = (SourceChange("“**A**” has a newer version:", page), SourceChange("“B” was withdrawn.", None))
    text = render(answer("Daily [1].", cited(1)), changes).text
    assert text == (
        "⚠️ “\\*\\*A\\*\\*” has a newer version: [p. 5 · \\*Handbook\\*](https://f.example/v/%28new%29)\n\n"
        f"⚠️ “B” was withdrawn.\n\nDaily [1].\n\n[\\[1\\] p. 1 · Backups]({LINK}1)"
    )


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "Run “curl -O https://logs.example.com/a.tar.gz”, then wait.",
            "`https://logs.example.com/a.tar.gz`",
        ),
        ("Restart nginx.service as root.", "`nginx.service`"),
        ("1. Stop.\ncurl -O https://x.example/a?b=1&c=2 [1]", "`curl -O https://x.example/a?b=1&c=2` [1]"),
        ("See /etc/hosts.d/a.conf or C:\\Temp\\a.log.", "`/etc/hosts.d/a.conf` or `C:\\Temp\\a.log`"),
        ("Write to www.example.com.", "`www.example.com`."),
        ("See x.example|`y`.", "`x.example`\\|\\`y\\`"),
    ],
)
def test_copyable_text_is_code_without_hidden_characters(said: str, shown: str) -> None:
    """Covers addresses, hosts and file names; characters that would end the code span are handled."""
    assert shown in render(answer(said)).text
