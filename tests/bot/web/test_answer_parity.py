"""Parity of the renderers: Slack, Teams and the console show the same text and link to the same places."""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from engines.support.slack_judges import message_faults
from engines.support.teams_schemas import faults_of
from fakes.memory_inbox import MemoryInbox
from fakes.web_house import House
from harness.tables import for_each
from platforms.stub.platform import EVENTS, SECRET, StubPlatform

from bot.answers.citations.source_buttons import numbered, opened_pages, picture_words
from bot.cli.ask import render_text
from bot.core.models import (
    Answer,
    AnsweredFrom,
    AnswerFigure,
    AnswerState,
    AppliedFilter,
    Citation,
    Language,
    NearestPage,
)
from bot.core.wording import reply_words
from bot.platforms.slack.blocks import render as render_slack
from bot.platforms.teams.cards import render as render_teams
from bot.platforms.teams.connector import card_activity, text_activity
from storage.models import Box, TenantName

SIGNED = f"https://footnote.example.org/v/{'x' * 108}"
PICTURE = f"https://footnote.example.org/f/{'y' * 111}"
LONG = "Standard operating procedure for the handling of everything that nobody else wants to handle, part "
SECTION = ("2 Absence from work and what to do about it", "2.1 Leave that is neither paid nor unpaid")


def cited(number: int, *, page: int = 0, name: str = "Handbook v3", web: bool = False) -> Citation:
    """Return a citation with its link."""
    citation = Citation(
        number, name, f"hr/{name}.pdf", page or number, f"Quote {number} & more.", (), f"{SIGNED}{number:04}"
    )
    if not web:
        said = {"section": SECTION, "details": ("SOP-HR-02", "HR", "2024-03-01")}
        return replace(citation, name=name, version_id=1, **said)
    url = f"https://example.org/renting#:~:text=Quote%20{number}"
    return replace(
        citation,
        file="https://example.org/renting",
        page=0,
        url=url,
        host="example.org",
        fetched="2026-03-01T12:00:00+00:00",
    )


def sentences(citations: tuple[Citation, ...]) -> str:
    """Return text with all characters that a renderer must escape, and a mark per citation."""
    return "\n".join(f"1. Say *this* & <that> of _{one.number}_. [{one.number}]" for one in citations)


def answers() -> Iterator[tuple[str, Answer]]:
    """Yield answers in every state and language, with 1 to 12 citations, long names and web pages."""
    for language in Language:
        words = reply_words(language)
        for state, count, is_generated in (
            (AnswerState.PASSAGES, 1, False),
            (AnswerState.GROUNDED, 4, True),
            (AnswerState.PARTIAL, 3, True),
            (AnswerState.PASSAGES, 3, False),
        ):
            quotes = tuple(cited(n, page=1 + n // 2) for n in range(1, count + 1))
            text = f"{words.model_failed}\n{sentences(quotes)}"
            yield (
                f"{language}-{state}-{count}",
                Answer(state, text, quotes, language=language, is_generated=is_generated),
            )
        near = NearestPage("it/sop_04.pdf", 3, f"{SIGNED}near", "sop_04.pdf")
        yield (
            f"{language}-not_found",
            Answer(
                AnswerState.NOT_FOUND,
                words.not_found,
                nearest=near,
                language=language,
                standalone="Why *so*?",
            ),
        )
        yield f"{language}-failed", Answer(AnswerState.FAILED, words.engine_failed, language=language)
        yield f"{language}-chat", Answer(AnswerState.CHAT, f"{words.help}\n• a_b.pdf", language=language)
    for count in range(1, 13):
        pages = tuple(cited(n, name=f"{LONG}{n}") for n in range(1, count + 1))
        yield (
            f"{count}-pages",
            Answer(AnswerState.GROUNDED, sentences(pages), pages, is_generated=count % 2 == 0),
        )
        one_page = tuple(cited(n, page=4) for n in range(1, count + 1))
        yield f"{count}-quotes-of-a-page", Answer(AnswerState.GROUNDED, sentences(one_page), one_page)
    mixed = (cited(1), cited(2, web=True), cited(3, page=1), cited(4, web=True))
    applied = AppliedFilter(("SOPs, from 2023-01-01 on",), 2, by_arrival=1)
    yield "web", Answer(AnswerState.GROUNDED, sentences(mixed), mixed, filter=applied)
    yield from illustrated(mixed)
    yield from direct(mixed)


def direct(mixed: tuple[Citation, ...]) -> Iterator[tuple[str, Answer]]:
    """Yield answers that name their channel, in every language, and a list of two channels."""
    figure = AnswerFigure("hr/Handbook.pdf", 7, LONG, Box(0, 0, 1, 1), f"{SIGNED}7", f"{PICTURE}a", 1)
    near = NearestPage("it/sop_04.pdf", 3, f"{SIGNED}near", "sop_04.pdf")
    for language in Language:
        for name in ("#it_ops", "#a-channel-with-a-name-that-no-label-has-room-for", "library/policies"):
            origin = AnsweredFrom((TenantName("sl_T0ACME001_C0ITOPS01"),), name)
            asked = {"language": language, "answered_from": origin}
            text = sentences(mixed)
            yield f"{language}-{name}", Answer(AnswerState.GROUNDED, text, mixed, (figure,), **asked)
        words = reply_words(language)
        missing = f"{words.found_in_no_channel([name] * 5)}"
        yield f"{language}-direct-nowhere", Answer(AnswerState.NOT_FOUND, missing, nearest=near, **asked)
        several = AnsweredFrom((TenantName("sl_T0ACME001_C0ITOPS01"), TenantName("sl_T0ACME001_C0HRTEAM1")))
        listed = Answer(AnswerState.CHAT, "#it_ops\n• a.pdf\n\n#hr\n• b.pdf", language=language)
        yield f"{language}-direct-list", replace(listed, answered_from=several)


def illustrated(mixed: tuple[Citation, ...]) -> Iterator[tuple[str, Answer]]:
    """Yield answers with one to three figures, with and without captions and marks, in every language."""
    figures = [
        AnswerFigure("hr/Handbook.pdf", page, caption, Box(0, 0, 1, 1), f"{SIGNED}{page}", link, number)
        for page, caption, link, number in (
            (7, "Figure 1. Days of *leave*", f"{PICTURE}a", 1),
            (8, "", f"{PICTURE}b", 3),
            (9, LONG * 5, f"{PICTURE}c", 0),
            (7, "The same page", f"{PICTURE}d", 0),
        )
    ]
    for language in Language:
        for shown in ((0,), (1, 0), (0, 1, 2), (3,)):
            answer = Answer(AnswerState.GROUNDED, sentences(mixed), mixed, language=language)
            yield (
                f"{language}-figures-{''.join(map(str, shown))}",
                replace(answer, figures=tuple(figures[place] for place in shown)),
            )
    passages = Answer(AnswerState.PASSAGES, sentences(mixed[:1]), mixed[:1], figures=tuple(figures))
    yield "figures-of-passages", passages


ANSWERS = dict(answers())


@dataclass(frozen=True, slots=True)
class Seen:
    """The visible parts of an answer and the URLs that they open."""

    # Line by line, beginning with the standalone question.
    words: list[str]
    # URL opened by each number in the text.
    marks: dict[int, str]
    # (label, URL), in order.
    sources: list[tuple[str, str]]
    is_generated: bool
    # (URL, alt text, title), in order.
    pictures: list[tuple[str, str, str]]


def uploaded(answer: Answer) -> dict[int, str]:
    """Return, for each figure with an image, its URL as the id of the uploaded file."""
    return {place: one.image for place, one in enumerate(answer.figures) if one.image}


def seen_in_slack(answer: Answer) -> Seen:
    """Parse the Block Kit payload as Slack would show it; images are named by their source URL."""
    words, marks, sources, is_generated = [], {}, [], False
    pictures = []
    for block in render_slack(answer, 5, uploaded(answer)).blocks:
        if block["type"] == "context" and block.get("block_id") == "generated":
            is_generated = True
        elif block["type"] == "context":
            words += [element["text"] for element in block["elements"]]
        elif block["type"] == "image":
            pictures.append((block["slack_file"]["id"], block["alt_text"], block["title"]["text"]))
        elif block["type"] == "actions":
            sources[:0] = [(one["text"]["text"], one["url"]) for one in block["elements"]]
        elif "accessory" in block:
            sources += [(one["text"]["text"], one["url"]) for one in block["accessory"]["options"]]
        else:
            text = block["text"]["text"]
            marks |= {
                int(number): html.unescape(url) for url, number in re.findall(r"<([^|>]+)\|\[(\d+)\]>", text)
            }
            text = re.sub(r"(?m)^\*(\d+\.)\*", r"\1", re.sub(r"<[^|>]+\|(\[\d+\])>", r"\1", text))
            words += html.unescape(text).replace("`", "").splitlines()
    return Seen(words, marks, sources, is_generated, pictures)


def seen_in_teams(answer: Answer) -> Seen:
    """Parse the activities as Teams would show them."""
    message = render_teams(answer)
    activity = text_activity(message)
    text, _, last = activity["text"].rpartition("\n\n")
    links = re.findall(r"\[((?:\\.|[^\]\\])*)\]\(([^)]*)\)", last)
    if not (opened_pages(answer) or answer.figures):
        text, links = activity["text"], []
    marks = {int(number): url for number, url in re.findall(r"\[\\\[(\d+)\\\]\]\(([^)]+)\)", text)}
    text = re.sub(r"\[\\\[(\d+)\\\]\]\([^)]+\)", r"[\1]", text)
    words = [line for line in _unescaped(text).split("\n\n") if line.strip()]
    (entity,) = activity["entities"] or [{}]
    for claim in entity.get("citation", ()):
        marks[claim["position"]] = claim["appearance"]["url"]
    return Seen(
        words,
        marks,
        [(_unescaped(label), url) for label, url in links],
        "AIGeneratedContent" in entity.get("additionalType", ()),
        list(_pictures(message.card or {})),
    )


def _pictures(card: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield each image with the text below it."""
    for block, below in pairwise(card.get("body", ())):
        if block["type"] == "Image":
            yield block["url"], block["altText"], below["inlines"][0]["text"]


def _unescaped(text: str) -> str:
    text = re.sub(r"(?m)^\*\*(\d+\.)\*\*", r"\1", text)
    plain = re.sub(r"(?<!\\)`([^`\\]+)`", r"\1", text)
    return html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", plain)).replace("\u2060", "")


@for_each("name", ANSWERS)
def test_slack_and_teams_render_the_same_answer(name: str) -> None:
    """Compares text, numbers, links, sources, figures and the model notice.

    Slack shows images between lines in text order, Teams below the text in answer order.
    """
    slack, teams = seen_in_slack(ANSWERS[name]), seen_in_teams(ANSWERS[name])
    assert [one for one in slack.words if one.strip()] == [one for one in teams.words if one.strip()]
    assert slack.marks == teams.marks == {one.number: one.url for one in ANSWERS[name].citations}
    assert sorted(slack.sources) == sorted(teams.sources)
    assert sorted(slack.pictures) == sorted(teams.pictures)
    assert [link for link, _, _ in teams.pictures] == list(uploaded(ANSWERS[name]).values())
    assert slack.is_generated == teams.is_generated == ANSWERS[name].is_generated


async def test_a_stub_platform_shows_the_same_answers() -> None:
    """Asks over HTTP and reads the room: text, numbers, links, sources, figures and notice as in Slack."""
    inbox = MemoryInbox(lambda message: ANSWERS[message.text])
    inbox.door = platform = StubPlatform(inbox.service)
    app = web.Application()
    platform.add_routes(app)
    async with TestClient(TestServer(app)) as client:
        for number, name in enumerate(ANSWERS):
            event = {"type": "question", "house": "h", "room": name, "id": number, "text": name}
            response = await client.post(EVENTS, json=event, headers={"X-Stub-Secret": SECRET})
            assert response.status == 200
            await asyncio.gather(*inbox.answering)
            (shown,) = platform.messenger.rooms[name]
            slack = seen_in_slack(ANSWERS[name])
            assert [one for one in shown["text"].splitlines() if one.strip()] == [
                one for one in slack.words if one.strip()
            ]
            assert {int(number): url for number, url in shown["marks"].items()} == slack.marks
            assert sorted(tuple(one) for one in shown["sources"]) == sorted(slack.sources)
            assert sorted(tuple(one) for one in shown["pictures"]) == sorted(slack.pictures)
            assert shown["is_generated"] == slack.is_generated
    await platform.stop()


@for_each("name", ANSWERS)
def test_the_terminal_names_the_same_sources(name: str) -> None:
    """Every number and URL appears in the output of ``footnote ask``."""
    said = render_text(ANSWERS[name])
    for page in opened_pages(ANSWERS[name]):
        assert page.url in said
        assert numbered(page, "").strip() in said
    for figure in ANSWERS[name].figures:
        assert figure.url in said


@for_each("name", ANSWERS)
def test_every_message_is_within_its_platforms_limits(name: str) -> None:
    """Slack's validators pass; a Teams card has at most 28 KB and a message at most 80 KB."""
    message = render_slack(ANSWERS[name], 5, uploaded(ANSWERS[name]))
    assert message_faults(message.blocks, message.text) == []
    in_teams = render_teams(ANSWERS[name])
    assert len(json.dumps(text_activity(in_teams)).encode("utf-16")) <= 80_000
    if in_teams.card:
        assert len(json.dumps(card_activity(in_teams.card, in_teams.card_summary)).encode()) <= 28_000


@pytest.mark.engine("playground")
def test_every_card_is_a_valid_adaptive_card() -> None:
    """Microsoft's parser accepts each card."""
    made = {name: card for name, answer in ANSWERS.items() if (card := render_teams(answer).card)}
    assert len(made) >= 10
    faults = faults_of(list(made.values()))
    assert {name: said for name, said in zip(made, faults, strict=True) if said} == {}


async def test_the_console_renders_the_same_answer(client: TestClient, house: House) -> None:
    """Text and numbers as in Slack; each number and source opens the same page or web page."""
    channel = await house.channel("alpha")
    headers = {"X-Footnote-Console": "1", "Origin": str(client.make_url("/")).rstrip("/")}
    for name, answer in ANSWERS.items():
        house.answering.answers["Why?"] = answer
        asked = {"channel": channel.id, "question": "Why?"}
        shown = await (await client.post("/console/ask", json=asked, headers=headers)).json()
        slack = seen_in_slack(answer)
        words = [*shown["understood"].splitlines(), *shown["text"].splitlines()]
        assert [line for line in words if line] == [line for line in slack.words if line], name
        leads = {one["number"]: one.get("web") or one["view"] for one in shown["citations"]}
        assert leads == {number: _place(url) for number, url in slack.marks.items()}, name
        opened = [(one["numbers"], one.get("web") or one["view"]) for one in shown["sources"]]
        assert opened == [
            (list(page.numbers), _place(page.url)) for page in opened_pages(answer) if page.numbers
        ]
        assert bool(shown["generated"]) == slack.is_generated, name
        pictures = [(one["image"], one["alt"]) for one in shown["figures"]]
        assert pictures == [
            (
                f"/f/{one.image.rpartition('/f/')[2]}" if one.image else "",
                picture_words(answer, one)[1],
            )
            for one in answer.figures
        ]


def _place(url: str) -> str:
    """Return the path of our viewer, or the URL of a web page."""
    return url if "example.org/renting" in url else f"/v/{url.rpartition('/v/')[2]}"
