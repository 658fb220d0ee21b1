"""Glossary synonyms: both search legs are expanded, and coverage counts them."""

from __future__ import annotations

from fakes.core import ASKED_AT, HashEmbedder, Shelf, ask, make_channel, make_passage

from bot.answer_settings import AnswerSettings
from bot.answers.retrieval.hybrid_retriever import HybridRetriever
from bot.answers.understanding.question_terms import (
    MAX_SYNONYMS,
    QuestionTerms,
    embedded_text,
    find_synonyms,
    searched_terms,
)
from bot.core.models import AnalyzedQuestion, Question
from storage.chat_models import GlossaryEntry
from storage.text.analyzer import analyze

PTO = GlossaryEntry("PTO", ("paid time off", "vacation"))
REVENUE = GlossaryEntry("top line", ("revenue",), is_mutual=True)


def said(question: str, *entries: GlossaryEntry, is_wide: bool = False) -> list[str]:
    return [synonym.text for synonym in find_synonyms(question, entries, is_wide=is_wide)]


def test_a_term_is_found_whatever_its_case_and_form() -> None:
    """Shows that whole sequences of analyzer terms are compared."""
    assert said("How much pto do I get?", PTO) == ["paid time off", "vacation"]
    assert said("the top lines of 2023", REVENUE) == ["revenue"]
    assert said("is the top of the line drawn?", REVENUE) == []
    assert said("laptops", PTO) == []


def test_an_entry_is_one_way_unless_mutual() -> None:
    """Shows that the reverse direction applies only if mutual, or in a wide search."""
    assert said("vacation days", PTO) == []
    assert said("revenue of 2023", REVENUE) == ["top line"]
    assert said("vacation days", PTO, is_wide=True) == ["PTO", "paid time off"]


def test_synonyms_in_the_question_are_not_added() -> None:
    """Shows that a synonym already in the question is not added again."""
    assert said("PTO (vacation)", PTO) == ["paid time off"]


def test_the_questions_own_terms_have_more_weight() -> None:
    """Shows that each term of the question is searched twice, and each synonym once."""
    terms = analyze("PTO in 2024")
    searched = searched_terms(terms, find_synonyms("PTO in 2024", [PTO]))
    counts = {term: searched.count(term) for term in searched}
    assert counts == {"pto": 2, "in": 2, "2024": 2, "paid": 1, "time": 1, "off": 1, "vacat": 1}
    assert searched_terms(terms, ()) == tuple(terms)
    assert embedded_text("PTO?", find_synonyms("PTO?", [PTO])) == "PTO? (paid time off, vacation)"
    assert embedded_text("PTO?", ()) == "PTO?"


def test_glossary_expansion_is_bounded() -> None:
    """Shows that a question of a hundred glossary terms is not expanded without limit."""
    entries = [GlossaryEntry(f"term{n}", tuple(f"word{n}x{m}" for m in range(20))) for n in range(100)]
    question = " ".join(entry.term for entry in entries)
    assert len(find_synonyms(question, entries)) == MAX_SYNONYMS


def with_synonyms(question: AnalyzedQuestion, entry: GlossaryEntry) -> AnalyzedQuestion:
    return AnalyzedQuestion(
        question.text, question.terms, question.idf, None, find_synonyms(question.text, [entry])
    )


def test_a_synonym_covers_the_question() -> None:
    """Shows that the synonym must occur as a whole."""
    vacation, time = "You get 30 days of vacation.", "Overtime is paid at all times."
    plain = ask("How much PTO?", vacation, time)
    known = with_synonyms(plain, PTO)
    assert QuestionTerms(plain).coverage(analyze(vacation)) == 0
    assert QuestionTerms(known).coverage(analyze(vacation)) == 1
    assert QuestionTerms(known).coverage(analyze(time)) == 0


async def test_both_legs_search_for_synonyms() -> None:
    """Shows that a page with only a synonym of the question's words ranks first."""
    shelf = Shelf(
        [
            make_passage("Parking costs 5 dollars.", title="a", ordinal=0),
            make_passage("Vacation is 30 days.", title="b", ordinal=1),
        ]
    )
    question = Question("q", "PTO?", make_channel(), ASKED_AT, synonyms=find_synonyms("PTO?", [PTO]))
    best = (await HybridRetriever(shelf, HashEmbedder(), AnswerSettings()).retrieve(question)).passages[0]
    assert (best.ordinal, best.bm25) == (1, 1.0)
    assert best.vector is not None
    assert best.vector > 0.2
