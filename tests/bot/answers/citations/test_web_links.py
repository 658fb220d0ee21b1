"""Citations of web pages: the approved URL with a text fragment, the same in every renderer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import unquote

from fakes.core import make_passage
from harness.tables import for_each

from bot.answers.citations.source_buttons import cited_pages
from bot.answers.citations.web_links import MAX_LINK_CHARS, marking_all, text_directive, web_citation
from bot.chat.conversation.answer_json import answer_from_json, answer_to_json
from bot.cli.ask import render_text
from bot.cli.json_output import answer_line
from bot.core.models import Answer, AnswerState, Citation, Language, LocatedQuote
from bot.platforms.slack.blocks import render as render_slack
from bot.platforms.teams.cards import render as render_teams
from storage.models import WebOrigin

URL = "https://example.org/renting/deposits"
FETCHED = datetime(2026, 3, 1, 12, tzinfo=UTC)


def cite(number: int, quote: str, anchor: str = "") -> Citation:
    """Return a citation of a web page."""
    passage = make_passage(quote, file=URL, title="Tenancy deposits")
    origin = WebOrigin("example.org", FETCHED)
    passage = replace(passage, publication=replace(passage.publication, web=origin, anchors=(anchor,)))
    return web_citation(number, LocatedQuote(passage, 0, len(quote), 1, quote, (), ()), quote)


@for_each(
    ("quote", "marked"),
    [
        ("The deposit is paid back.", "The deposit is paid back."),
        ("2. Ask, then wait - always.", "Ask, then wait - always."),
        ("- An item of a list.", "An item of a list."),
        ("| Car | £41.50 | £78.00 |", "Car,£78.00"),
        (
            "Your landlord must put your deposit in a scheme within 30 days of getting it.",
            "Your landlord must put your deposit,within 30 days of getting it.",
        ),
        ("First line of it\n\nLast line of it", "First line of it,Last line of it"),
        ("|", ""),
    ],
)
def test_a_link_highlights_the_words_as_printed_on_the_page(quote: str, marked: str) -> None:
    """Shows that our list and cell marks are left out, and that long quotes are given by start and end."""
    directive = text_directive(quote)
    parts = directive.removeprefix(":~:text=").split(",")
    assert ",".join(map(unquote, parts)) == marked
    assert "-" not in directive
    assert " " not in directive


def test_a_citation_opens_the_approved_address() -> None:
    """Shows host, date and anchor of a citation, and that it has no PDF page or boxes."""
    one = cite(1, "It is paid back.", anchor="end")
    assert one.url == f"{URL}#end:~:text=It%20is%20paid%20back."
    assert (one.host, one.fetched, one.boxes, one.version_id) == (
        "example.org",
        "2026-03-01T12:00:00+00:00",
        (),
        0,
    )


def test_a_button_marks_all_quotes_of_its_page() -> None:
    """Shows that two quotes on a page share a button whose text fragments mark both, each once."""
    citations = (cite(1, "It is paid back."), cite(2, "Ask first."), cite(3, "It is paid back."))
    (page,) = cited_pages(Answer(AnswerState.GROUNDED, "", citations))
    assert page.numbers == (1, 2, 3)
    assert page.url == f"{URL}#:~:text=It%20is%20paid%20back.&text=Ask%20first."
    assert marking_all([URL]) == URL


def test_an_anchor_cannot_add_fragments() -> None:
    """Shows that an id with a space or hash stays one fragment, percent-encoded like in a browser."""
    one = cite(1, "Ask first.", anchor='a b|<"#:~:text=x')
    assert " " not in one.url
    assert (one.url.count("#"), one.url.count(":~:")) == (1, 1)
    assert unquote(one.url.partition("#")[2]).endswith("x:~:text=Ask first.")
    assert cite(1, "Ask first.", anchor="a(b)").url == f"{URL}#a(b):~:text=Ask%20first."


def test_a_link_is_never_longer_than_slack_accepts() -> None:
    """Shows that text fragments beyond the limit are dropped, and so is an anchor that is too long."""
    citations = tuple(cite(number, f"{number}{'租客押金' * 20}") for number in range(1, 6))
    (page,) = cited_pages(Answer(AnswerState.GROUNDED, "", citations))
    assert page.url.count("text=") == 4
    assert len(page.url) <= MAX_LINK_CHARS
    assert cite(1, "租" * 400).url == f"{URL}#"
    assert cite(1, "Ask first.", anchor="a" * 3000).url == URL


def test_every_renderer_labels_and_links_a_web_source() -> None:
    """Shows that Slack, Teams and the terminal show the same label and URL."""
    answer = Answer(AnswerState.GROUNDED, "It is paid back. [1]", (cite(1, "It is paid back."),))
    label = "Web · example.org, read on 2026-03-01 · Tenancy deposits"
    for said in (
        str(render_slack(answer, 5)),
        str(render_teams(answer)),
        render_text(answer).replace("\n", " "),
    ):
        assert label in said.replace("\\u2060", "")
        assert cite(1, "It is paid back.").url in said


@for_each("language", list(Language))
def test_a_long_host_is_shortened_and_the_date_is_kept(language: Language) -> None:
    """Shows in Slack and Teams, in every language, that host and date of a button are legible."""
    cited = replace(cite(1, "It is paid back."), host="www.landlords-and-tenants.housing.example.org")
    answer = Answer(AnswerState.GROUNDED, "It is paid back. [1]", (cited,), language=language)
    for said in (render_teams(answer).text, str(render_slack(answer, 5))):
        shown = said.replace("\u2060", "").replace("\\u2060", "").replace("`", "")
        assert "Web · www.landl…ousing.example.org" in shown
        assert "2026-03-01 · " in shown


def test_json_names_the_kind_of_source() -> None:
    """Shows kind, host and time of a web citation, which has neither page nor boxes."""
    answer = Answer(
        AnswerState.GROUNDED, "", (cite(1, "It is paid back."), replace(cite(2, "x"), host="", page=3))
    )
    web, pdf = answer_line(answer, id=1, question="q", channel="it")["citations"]
    assert (web["kind"], web["page"], web["boxes"]) == ("web", None, [])
    assert (web["host"], web["fetched"]) == ("example.org", "2026-03-01T12:00:00+00:00")
    assert (pdf["kind"], pdf["page"], "host" in pdf) == ("pdf", 3, False)


def test_a_stored_answer_keeps_its_web_sources() -> None:
    """Shows that the outbox preserves all fields of a web citation."""
    answer = Answer(AnswerState.GROUNDED, "It is paid back. [1]", (cite(1, "It is paid back."),))
    assert answer_from_json(answer_to_json(answer)) == answer
