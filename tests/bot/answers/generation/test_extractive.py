"""Extractive answers without a model: the right sentence or row, or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import pytest
from fakes.core import BACKUPS, TRAVEL, HashEmbedder, ask, make_evidence, make_passage, verify_quotes
from harness.tables import for_each

from bot.answers.generation.extractive import ExtractiveAnswerer
from bot.answers.verification.claims import verify
from storage.text.sentences import quotables

FORM = (
    "Location:  Tallahassee, FL  Accident Number:  NYC08CA055\nAirframe Total Time:\n"
    "Effective date: 2024-01-15\n\nAnalysis\nThe pilot flew low. The crew was safe."
)


class CountingEmbedder(HashEmbedder):
    """Records the embedded texts."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def aembed(self, texts: Sequence[str]) -> np.ndarray:
        """Embed by hash."""
        self.texts += texts
        return await super().aembed(texts)


@dataclass
class Shelved:
    """Vectors by reading."""

    kept: dict[UUID, dict[tuple[int, int], np.ndarray]]

    async def vectors(
        self, chunks: Sequence[tuple[UUID, int, str]]
    ) -> list[dict[tuple[int, int], np.ndarray]]:
        """Return the vectors of each reading's only chunk."""
        return [self.kept[reading_id] for reading_id, _, _ in chunks]


async def quoted(question: str, *texts: str, with_vectors: bool = True) -> list[str]:
    evidence = make_evidence(*(make_passage(text, ordinal=number) for number, text in enumerate(texts)))
    vector = (await HashEmbedder().aembed([question]))[0] if with_vectors else None
    asked = ask(question, *texts, vector=vector)
    ranked = await ExtractiveAnswerer(HashEmbedder()).rank(asked, evidence)
    draft = ranked.draft(asked, ranked.chosen(asked))
    verified = verify(draft, evidence)
    assert verified.faults == ()
    return [quote.quote for claim in verified.claims for quote in claim.quotes]


@for_each("with_vectors", [True, False])
@for_each(
    ("question", "answer"),
    [
        ("When do backups run?", "Backups run daily at 2:00 AM."),
        ("How soon is a failed backup repeated?", "A failed backup is repeated within 4 hours"),
        ("When are travel costs refunded?", "Travel costs are refunded within 30 days."),
        ("What is the effective date?", "Effective date: 2024-01-15"),
        ("What is the accident number?", "Location:  Tallahassee, FL  Accident Number:  NYC08CA055"),
    ],
)
async def test_the_right_unit_is_quoted_first(question: str, answer: str, *, with_vectors: bool) -> None:
    """Shows it with and without vectors."""
    assert (await quoted(question, BACKUPS, TRAVEL, FORM, with_vectors=with_vectors))[0].startswith(answer)


async def test_the_wrong_year_does_not_outrank_the_right_one() -> None:
    """A sentence about other years than the requested one ranks lower."""
    text = "In 2023 net sales of the company were 40 million dollars.\nSales were 52 million dollars in 2024."
    assert (await quoted("What were net sales of the company in 2024?", text))[0].startswith("Sales were 52")


async def test_a_label_without_a_value_is_no_answer() -> None:
    """An empty form field is never quoted."""
    assert "Airframe Total Time:" not in await quoted("What is the airframe total time?", FORM)


async def test_every_quote_is_the_documents_own() -> None:
    """Quotes are located at the offset they were copied from, even if the words repeat."""
    text = "Step 1. Lock the door.\nStep 2. Call security. Lock the door."
    evidence = make_evidence(make_passage(text))
    asked = ask("Who locks the door?", text)
    ranked = await ExtractiveAnswerer(HashEmbedder()).rank(asked, evidence)
    draft = ranked.draft(asked, ranked.chosen(asked))
    for claim in draft.claims:
        (quote,) = claim.quotes
        assert quote.start is not None
        assert text[quote.start :].startswith(quote.text)


async def test_two_overlapping_passages_give_one_quote() -> None:
    """A sentence shared by two chunks is quoted once."""
    twice = await quoted("When do backups run?", BACKUPS, BACKUPS)
    assert twice == await quoted("When do backups run?", BACKUPS)


async def test_sentences_embedded_at_reading_are_not_embedded_again() -> None:
    """Shows that stored vectors are equivalent, and that only sentences without one are embedded."""
    passage = make_passage(BACKUPS)
    units = list(quotables(BACKUPS))
    question = ask(
        "When do backups run?", BACKUPS, vector=(await HashEmbedder().aembed(["when backup run"]))[0]
    )
    vectors = await HashEmbedder().aembed([unit.text for unit in units])
    kept = {(unit.start, unit.end): vector for unit, vector in zip(units, vectors, strict=True)}
    drafts, costs = [], []
    for known in ({}, dict(list(kept.items())[:2]), kept):
        embedder = CountingEmbedder()
        answerer = ExtractiveAnswerer(embedder, Shelved({passage.publication.reading_id: known}))
        ranked = await answerer.rank(question, make_evidence(passage))
        drafts.append(ranked.draft(question, ranked.chosen(question)))
        costs.append(ranked.embedded)
        assert sorted(embedder.texts) == sorted(
            one.text for one in units if (one.start, one.end) not in known
        )
    assert drafts[0].claims
    assert drafts[0].claims == drafts[1].claims == drafts[2].claims
    assert costs[0] > costs[1] > costs[2] == 0


async def test_no_evidence_gives_an_empty_draft() -> None:
    """Without passages there is nothing to quote."""
    asked = ask("When?")
    ranked = await ExtractiveAnswerer(HashEmbedder()).rank(asked, [])
    assert ranked.draft(asked, ranked.chosen(asked)).claims == ()


async def test_context_words_of_a_follow_up_have_little_weight() -> None:
    """Shows that words in brackets give the context, and those before them the question."""
    text = "Nightly backups run at 2 AM. Restores are tested every quarter by the administrator."
    first, *_ = await quoted("how often are they tested (nightly backups run)?", text, with_vectors=False)
    assert first.startswith("Restores are tested")


async def test_an_unrequested_form_field_is_no_answer() -> None:
    """Shows that a form row is quoted for its labels, not for naming the same thing."""
    form = "Location:  Venice, FL  Accident Number:  NYC08CA047"
    text = "The student of the flight school in Venice landed alone."
    assert await quoted("Who landed in Venice?", form, text) == [text]
    assert (await quoted("What is the accident number of Venice?", form, text))[0] == form


async def test_a_row_of_another_thing_is_no_answer() -> None:
    """Shows that a row needs an asked word in its label or columns, or a name from the question."""
    history = "| Version | Changes |\n| --- | --- |\n| 2.1 | Managers decide about work from abroad |"
    text = "Work abroad is for managers."
    assert await quoted("Who may work from abroad?", history, text) == [text]
    assert await quoted("Which version allows work from abroad?", history) == [history.splitlines()[-1][2:-2]]
    rooms = "| Person | Room |\n| --- | --- |\n| Lindqvist | North 12 |"
    assert await quoted("Who works in North 12?", rooms, text) == ["Lindqvist | North 12"]


async def test_a_heading_with_a_separate_number_is_no_answer() -> None:
    """Shows that it is not taken for a form row of two cells."""
    heading, text = "4.  Required Materials", "Materials of every trip are a phone and a first aid kit."
    assert await quoted("Which materials are required?", f"{heading}\n\n{text}") == [text]


async def test_a_table_header_is_no_answer() -> None:
    """Shows that a row is quoted rather than a header with the question's words."""
    table = "| System | Kept for |\n| --- | --- |\n| Mailboxes | 90 days |"
    assert await quoted("For how long are the mailboxes of the system kept?", table) == [
        "Mailboxes | 90 days"
    ]


@pytest.mark.parametrize(
    ("text", "question", "quote"),
    [
        (
            "Hearing aids are for adults.\nThese cost at most $500 an ear.",
            "What do they cost at most?",
            "Hearing aids are for adults.\nThese cost at most $500 an ear.",
        ),
        (
            "Der Tarif gilt seit 2020.\nDieser kostet höchstens 90 EUR im Monat.",
            "Was kostet er höchstens im Monat?",
            "Der Tarif gilt seit 2020.\nDieser kostet höchstens 90 EUR im Monat.",
        ),
        (
            "Call early.\nIt is important to note that a visit costs $20.",
            "What does a visit cost?",
            "It is important to note that a visit costs $20.",
        ),
    ],
)
async def test_a_quote_with_a_pronoun_includes_its_antecedent(text: str, question: str, quote: str) -> None:
    """A quote like "These cost $500" includes its antecedent; without one it is quoted alone."""
    assert (await quoted(question, text))[0] == quote


@pytest.mark.parametrize("bullet", ["•", "·"])
async def test_a_list_item_is_quoted_with_its_distant_lead(bullet: str) -> None:
    """A single source marks both, so that no exclusion is shown without its lead."""
    lead = "The following are not covered:"
    items = "\n".join(
        f"{bullet} Treatment number {n} with all that belongs to it in any way" for n in range(12)
    )
    surgery = f"{bullet} Cosmetic surgery of the nose and chin"
    evidence = make_evidence(make_passage(f"{lead}\n{items}\n{surgery}"))
    asked = ask("Is cosmetic surgery covered?", evidence[0].passage.text)
    ranked = await ExtractiveAnswerer(HashEmbedder()).rank(asked, evidence)
    draft = ranked.draft(asked, ranked.chosen(asked))
    verified = verify_quotes(draft, evidence)
    assert f"“{lead} … {surgery}” [" in verified.text
    assert "number 0" not in verified.text
    (cited,) = (one for one in verified.cited if surgery in one.quote)
    assert cited.quote == f"{lead} … {surgery}"
    assert len(cited.boxes) > 1


SCHEDULE = (
    "Table 1. Backup schedule\n\n| System | Kept for |\n| --- | --- |\n"
    "| Mailboxes | 90 days |\n| Databases | 35 days |"
)


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("Show me the table of the backup schedule", ["Mailboxes", "Databases"]),
        ("How long are mailboxes kept, by the table?", ["Mailboxes"]),
    ],
)
async def test_a_question_for_a_table_gets_the_whole_table(question: str, rows: list[str]) -> None:
    """The table has its caption and header, one row per line; a question for a value gets only its row."""
    evidence = make_evidence(make_passage(SCHEDULE))
    asked = ask(question, SCHEDULE)
    ranked = await ExtractiveAnswerer(HashEmbedder()).rank(asked, evidence)
    draft = ranked.draft(asked, ranked.chosen(asked))
    kept = {"Mailboxes": "90 days", "Databases": "35 days"}
    said = "\n".join(f"System: {row} · Kept for: {kept[row]}" for row in rows)
    assert verify_quotes(draft, evidence).text.startswith(f"“Table 1. Backup schedule\n{said}” [1]")


CODES = (
    "| Code | Meaning |\n| --- | --- |\n"
    "| 03-7FC22.09 | HMI1: time out |\n| 00-07F8A0.2 | Crankshaft signal error |"
)


async def test_only_the_row_of_the_requested_code_is_quoted() -> None:
    """Shows that the row of another code is not quoted."""
    assert await quoted("What does 03-7FC22.09 mean?", CODES) == ["03-7FC22.09 | HMI1: time out"]


async def test_words_for_the_form_of_an_answer_have_no_weight() -> None:
    """Shows that "steps" does not find other lists of steps, but counts if it is the only word."""
    check, restore = "The steps of the daily check are short.", "To restore data, open a ticket first."
    assert await quoted("Give me the steps to restore data", check, restore) == [restore]
    assert await quoted("Which steps?", check, restore) == [check]


async def test_a_row_is_matched_by_its_column_names() -> None:
    """Shows that a row without any word of the question is found by its header."""
    table = "| System | Kept for |\n| --- | --- |\n| Mailboxes | 90 days |"
    assert await quoted("How long is it kept?", table, "It is long gone.") == ["Mailboxes | 90 days"]
