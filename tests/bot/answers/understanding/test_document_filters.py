"""Document filters in questions: they narrow a search if said about documents, not otherwise."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

import pytest
from fakes.core import ASKED_AT, Register, make_channel
from harness.tables import for_each

from bot.answers.understanding.channel_documents import ChannelView
from bot.answers.understanding.document_filters import read_filters, without_filters
from bot.answers.understanding.where_filters import where_filter
from bot.core.models import AppliedFilter, Language, Question
from bot.core.wording import reply_words
from storage.errors import SettingsError
from storage.models import DocumentStatus, MetadataField, Rung

ARRIVED = datetime(2026, 11, 1, tzinfo=UTC)


def document(file: str, title: str, **said: str) -> DocumentStatus:
    """Return a document with this metadata; dates are ISO days."""
    days = {"effective", "last_updated"}
    fields = {
        name: MetadataField(name, value, 1, (), value if name in days and len(value) == 10 else None)
        for name, value in said.items()
    }
    return DocumentStatus(
        "it", uuid5(NAMESPACE_URL, file), "0" * 64, file, title, 3, "live", Rung.FULL, None, fields,
        arrived_at=ARRIVED,
    )  # fmt: skip


SPILLS = document(
    "a.pdf", "Spills", sop_id="F-1", department="Facilities", effective="2024-03-01", version="2.1"
)
FLOORS = document(
    "b.pdf", "Floors", sop_id="F-2", department="Facilities", effective="2019-03-01", version="1"
)
HIRING = document("c.pdf", "Hiring", sop_id="H-1", department="People", effective="2024-06-01", version="10")
LEAVE = document("d.pdf", "Leave Policy", last_updated="5/10/21")
DRAFT = document("e.pdf", "Draft of the Leave Policy")
REPORT = document("report_v2.pdf", "Accidents", document_type="Final Report", effective="2020-07-01")
DOCUMENTS = [SPILLS, FLOORS, HIRING, LEAVE, DRAFT, REPORT]


async def narrowed(text: str, language: Language = Language.ENGLISH) -> Question:
    """Return the question as it is searched."""
    question = Question("q", text, make_channel(), ASKED_AT, language=language)
    return await ChannelView(Register(DOCUMENTS), make_channel()).narrow(question)


async def files(text: str) -> str:
    """Return the first letters of the files in scope; '' for all."""
    chosen = (await narrowed(text)).documents
    return "" if chosen is None else "".join(one.file[0] for one in DOCUMENTS if one.document in chosen)


@for_each(
    ("question", "chosen"),
    [
        ("How are spills reported? Only SOPs of Facilities since 2023.", "a"),
        ("only SOPs: who signs?", "abc"),
        ("Who signs in version 2?", "ar"),
        ("Who signs according to v2.1?", "a"),
        ("How long is leave? Not the drafts.", "abcdr"),
        ("Which SOPs after March 2024 speak of hiring?", "c"),
        ("Which documents before 2021 speak of floors?", "br"),
        ("What do reports between 2019 and 2021 say about fuel?", "r"),
        ("Which policies from 2021 on speak of leave?", "de"),
        ("Which policies until 5 May 2022 speak of leave?", "d"),
        ("the report from 2020 on fuel", "r"),
        ("Wer unterschreibt? Nur Verfahrensanweisungen seit 2023.", "ac"),
        ("Wie lange dauert die Elternzeit, nicht in den Entwürfen?", "abcdr"),
        ("Qui signe, seulement les procédures depuis 2023 ?", "ac"),
        ("¿Quién firma?, solo procedimientos desde 2023", "ac"),
        ("Chi firma, solo le procedure dal 2023?", "ac"),
        ("Quem assina, apenas procedimentos desde 2023?", "ac"),
        ("Wie tekent, alleen werkinstructies sinds 2023?", "ac"),
        ("rapporti tra il 2019 e il 2021", "r"),
    ],
)
async def test_conditions_on_documents_are_a_filter(question: str, chosen: str) -> None:
    """Covers kind, department, date and version in all languages; an undated one counts from its arrival."""
    assert await files(question) == chosen


@for_each(
    "question",
    [
        "How many accidents happened since 2019?",
        "Which people hired after 2020 get a bonus?",
        "What changed in 2023?",
        "How do I report an accident?",
        "We can only report accidents by phone?",
        "Can I travel without forms?",
        "What if I do not report it?",
        "Wie viele Unfälle gab es seit 2019?",
        "Who signs in version 7?",
    ],
)
async def test_other_conditions_are_no_filter(question: str) -> None:
    """No document is excluded, and no word is removed."""
    narrow = await narrowed(question)
    assert (narrow.text, narrow.documents, narrow.filter) == (question, None, None)


async def test_the_applied_filter_is_reported() -> None:
    """The notice is in the reply's language; the filter's words are removed from the query."""
    found = await narrowed("Wer unterschreibt? Nur Dokumente seit 2024.", Language.GERMAN)
    assert found.text == "Wer unterschreibt?"
    assert found.filter == AppliedFilter(("Dokumente, ab 2024-01-01",), 3, by_arrival=1)
    found = await narrowed("Who signs SOPs of Facilities since 2023?")
    assert found.text == "Who signs SOPs of Facilities?"
    assert found.filter == AppliedFilter(("Facilities", "SOPs, from 2023-01-01 on"), 1)


async def test_a_filter_without_matches_searches_all_documents() -> None:
    """Shows that a filter without a match is reported."""
    found = await narrowed("only SOPs since 2030: who signs?")
    assert (found.documents, found.filter) == (None, AppliedFilter(("SOPs, from 2030-01-01 on",), 0))


async def test_a_given_filter_is_combined_with_the_questions() -> None:
    """A filter set by a person is never widened."""
    question = replace(
        await narrowed("who"), text="only SOPs: who?", documents=frozenset({SPILLS.document, LEAVE.document})
    )
    view = ChannelView(Register(DOCUMENTS), make_channel())
    assert (await view.narrow(question)).documents == {SPILLS.document}


def test_a_question_of_filters_alone_keeps_its_words() -> None:
    """The filter words are kept, since there would be nothing else to search."""
    text = "only documents since 2023"
    assert without_filters(text, read_filters(text)) == text


@for_each(
    ("field", "value", "chosen"),
    [
        ("effective", "2024-03-01", "a"),
        ("effective", "2024", "ac"),
        ("effective", "2019..2020", "br"),
        ("effective", "2024-04..", "c"),
        ("date", "..2021", "bdr"),
        ("date", "2026", "e"),
        ("last_updated", "5/10/21", "d"),
        ("version", "1..2", "ab"),
        ("version", "2..", "ac"),
        ("kind", "sop", "abc"),
        ("kind", "policies", "de"),
        ("kind!", "draft", "abcdr"),
        ("department!", "facilities", "cder"),
    ],
)
def test_where_accepts_ranges_and_kinds(field: str, value: str, chosen: str) -> None:
    """Days, months, years and versions, both ends inclusive; ``!`` negates."""
    fits = where_filter(field, value)
    assert "".join(one.file[0] for one in DOCUMENTS if fits(one)) == chosen


@for_each(
    ("field", "value", "told"),
    [
        ("colour", "red", "the fields are sop_id, "),
        ("version", "", "use FIELD=VALUE"),
        ("effective", "soon", "invalid date, use 2023, 2023-05 or 2023-05-01"),
        ("date", "..", "or a range: 2023..2024, 2023.. or ..2024"),
        ("date", "2023..never", "or a range: 2023..2024"),
        ("version", "..", "2..3, 2.. or ..3"),
        ("kind", "novel", "unknown kind, use one of sop, policy, handbook, report, guide, form, draft"),
    ],
)
def test_an_invalid_filter_is_refused_with_a_hint(field: str, value: str, told: str) -> None:
    """The error shows the accepted form."""
    with pytest.raises(SettingsError, match="--where") as refused:
        where_filter(field, value)
    assert told in str(refused.value)


def test_the_notice_has_both_forms_in_every_language() -> None:
    """Shows a filter with and without matching documents."""
    for language in Language:
        words = reply_words(language)
        assert "SOPs" in words.searched_only(2, filter="SOPs")
        assert "SOPs" in words.searched_all(filter="SOPs")
