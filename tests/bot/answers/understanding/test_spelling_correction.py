"""Spelling correction: misspelt words are corrected to words of their channel, correct ones never are."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest
from fakes.core import ASKED_AT, Book, HashEmbedder, Shelf, Vocabulary, make_channel, make_passage
from harness.tables import for_each

from bot.answer_settings import AnswerSettings
from bot.answers.retrieval.hybrid_retriever import HybridRetriever, QueryExpansionRetriever
from bot.answers.understanding.question_terms import weighted_terms
from bot.answers.understanding.spelling_correction import (
    SpellingCorrector,
    alternatives,
    correct_text,
    find_corrections,
    unknown_words,
)
from bot.core.models import Correction, Language, Question, Retrieval, Synonym
from storage.chat_models import GlossaryEntry
from storage.errors import DatabaseUnavailable
from storage.text.analyzer import analyze
from storage.text.token_counts import is_frequent_word

BACKUPS = "Backups run daily. The IT department checks the databases, and repeats a failed backup."
WORDS = {"backups": 1, "databases": 2, "database": 1, "checks": 1, "policy": 4, "department": 1}


def unknown(text: str, document: str = BACKUPS) -> tuple[str, ...]:
    held = analyze(document)
    return unknown_words(text, {term: held.count(term) for term in analyze(text)})


def corrected(typed: str, vocabulary: Mapping[str, int] = WORDS) -> list[str]:
    return [one.word for one in find_corrections([typed], vocabulary)]


@for_each(
    ("text", "words"),
    [
        ("Who pays overtime for checking backup?", ("pays", "overtime")),
        ("Is failing repeatedly checked by departments?", ()),
        ("overtime, Overtime and overtime's rate", ("overtime", "Overtime", "rate")),
        ("the pay of SOP-IT-99, form_a, x86, a@b.de, example.com and didn't", ()),
        ("half-yearly and back-ups", ("half", "yearly")),
        ("a failedBackup in a failedBakcup", ("failedBakcup",)),
        ("Kündigung", ("Kündigung",)),
    ],
)
def test_unknown_words_are_content_words_in_no_chunk(text: str, words: tuple[str, ...]) -> None:
    """Covers which words count: only letters, at least four, none of whose terms occurs in a chunk."""
    assert unknown(text) == words


def test_function_words_and_glossary_terms_are_not_unknown() -> None:
    """Shows that words without a looked-up frequency, and glossary terms, do not count."""
    assert unknown_words("which overtime", {"overtim": 0}) == ("overtime",)
    assert unknown_words("which overtime", {"overtim": 0}, {"overtim"}) == ()


@for_each(
    ("typed", "word"),
    [
        ("bakcups", "backups"),
        ("polcy", "policy"),
        ("datbases", "databases"),
        ("dtaabsaes", "databases"),
        ("opt", None),
        ("plicoys", None),
        ("abckups", "backups"),
        ("dackups", None),
        ("Bakcups", "Backups"),
        ("backups", None),
    ],
)
def test_the_closest_word_within_its_length_limit_is_chosen(typed: str, word: str | None) -> None:
    """Shows a distance of one below eight letters and two from there on; the first letter must match."""
    assert corrected(typed)[:1] == ([word] if word else [])


@for_each(
    ("typed", "vocabulary"),
    [
        ("nevre", {"never": 5}),
        ("undated", {"updated": 5}),
        ("comp", {"come": 5, "com": 4}),
        ("microtome", {"microsope": 1, "microscope": 8}),
        ("exclamatin", {"exlamation": 1, "exclamation": 2, "exclamations": 0}),
    ],
)
def test_no_word_is_corrected_to_another_meaning(typed: str, vocabulary: Mapping[str, int]) -> None:
    """Shows that negations are preserved, short words stay, and misspellings in documents are not used."""
    assert not {"never", "updated", "come", "microsope", "exlamation"} & set(corrected(typed, vocabulary))


@for_each("word", ["Arteaga", "encrypted", "urlaubsantrag"])
def test_rare_words_are_corrections_unless_they_look_misspelt(word: str) -> None:
    """Shows that names, frequent words and words unlike any other count, however rare."""
    typed = word[:-3] + word[-2:]
    assert corrected(typed, {word.lower(): 1})[:1] == [word if word[0].isupper() else word.lower()]


@for_each(
    ("word", "language"),
    [
        ("cant", Language.ENGLISH),
        ("Didnt", Language.ENGLISH),
        ("nicht", Language.ENGLISH),
        ("ningún", Language.ENGLISH),
        ("gibts", Language.GERMAN),
        ("preavis", Language.FRENCH),
    ],
)
async def test_contractions_negations_and_common_words_are_no_errors(word: str, language: Language) -> None:
    """Shows that none is corrected, however similar a word of the documents is."""
    near = {word.lower()[:-1]: 9, word.lower() + "s": 9, word.lower()[:-1] + "x": 9}
    corrector = SpellingCorrector(Vocabulary({1: near}))
    assert await corrector.correct(make_channel(), [word], language) == ()


def test_a_contraction_has_no_weight() -> None:
    """Shows that "cant" is never reported as a word in no document."""
    assert weighted_terms("they cant, shouldnt or wont breathe") == set(analyze("breathe"))


def test_the_likelier_of_equally_close_words_comes_first() -> None:
    """Shows distance before transpositions before frequency, and at most two words with different stems."""
    assert corrected("intergal", {"internal": 9, "integral": 1}) == ["integral"]
    assert corrected("documnet", {"document": 1, "documents": 50}) == ["document"]
    assert corrected("vally", {"valle": 1, "valley": 3, "valiy": 2}) == ["valley", "valiy"]
    assert corrected("valleyz", {"valleys": 1, "valley": 2}) == ["valley"]


def test_accents_make_no_difference_and_are_kept() -> None:
    """Shows that a word is corrected to its spelling in the documents."""
    assert corrected("Kundigugn", {"kündigung": 1}) == ["Kündigung"]


@for_each(
    ("word", "is_frequent"),
    [("overtime", True), ("planes", True), ("Dads", True), ("harnes", False), ("encyrpted", False)],
)
def test_frequent_words_are_those_of_the_bundled_vocabulary(word: str, is_frequent: bool) -> None:
    """Shows that a singular in it suffices, and that it contains no typo."""
    assert is_frequent_word(word) is is_frequent


async def test_a_frequent_word_is_never_corrected() -> None:
    """Shows that "planes" stays although "plans" is close, and so does an abbreviation."""
    vocabulary = Vocabulary({1: {"plans": 9, "oshe": 1}})
    corrector = SpellingCorrector(vocabulary)
    assert await corrector.correct(make_channel(), ["planes", "OSHA"]) == ()
    assert vocabulary.asked == 0
    assert await corrector.correct(make_channel(), ["plnas"]) == (Correction("plnas", "plans"),)


async def test_a_word_of_another_channel_is_no_correction() -> None:
    """Shows that only the channel's own vocabulary is used."""
    corrector = SpellingCorrector(Vocabulary({2: WORDS}))
    assert await corrector.correct(make_channel(), ["polcy"]) == ()


async def test_a_language_without_a_word_list_is_corrected_cautiously() -> None:
    """Shows that only transpositions, or one error in a long word, are corrected there."""
    words = {"urlaub": 1, "kasten": 1, "reisekosten": 1}
    typed = ["Urluab", "Kosten", "Reisekostne", "Reisekosen", "Rieskosten"]
    corrector = SpellingCorrector(Vocabulary({1: words}))
    found = await corrector.correct(make_channel(), typed, Language.GERMAN)
    assert [one.typed for one in found] == ["Urluab", "Reisekostne", "Reisekosen"]
    assert len(await corrector.correct(make_channel(), typed)) == len(typed)


async def test_without_a_vocabulary_words_are_unchanged(caplog: pytest.LogCaptureFixture) -> None:
    """Shows that the question continues, and that the log does not contain the word."""
    corrector = SpellingCorrector(Vocabulary({}, DatabaseUnavailable("down")))
    with caplog.at_level(logging.WARNING):
        assert await corrector.correct(make_channel(), ["polcy"]) == ()
    assert "spelling correction skipped: channel=1: DatabaseUnavailable" in caplog.text
    assert "polcy" not in caplog.text


def test_second_best_corrections_become_synonyms() -> None:
    """Shows that whole words are replaced in each place, and nothing else."""
    corrections = [
        Correction("vally", "valley"),
        Correction("vally", "valle"),
        Correction("lenght", "length"),
    ]
    text = correct_text("vally-lenght of the vallys, vally?", corrections)
    assert text == "valley-length of the vallys, valley?"
    assert list(alternatives(corrections)) == [Synonym(("valley",), ("vall",), "valle")]
    assert correct_text("as it is", ()) == "as it is"


async def retrieved(text: str, vocabulary: Vocabulary, *entries: GlossaryEntry) -> Retrieval:
    shelf = Shelf([make_passage(BACKUPS), make_passage("Parking is free.", title="Parking", ordinal=1)])
    retriever = QueryExpansionRetriever(
        HybridRetriever(shelf, HashEmbedder(), AnswerSettings()),
        Book(entries),
        speller=SpellingCorrector(vocabulary),
    )
    return await retriever.retrieve(Question("q", text, make_channel(), ASKED_AT))


async def test_a_misspelt_question_is_judged_as_the_correct_one() -> None:
    """Shows equal terms, weights, scores and order, and the list of corrections."""
    misspelt = await retrieved("who checks the databsaes for overtime?", Vocabulary({1: WORDS}))
    correct = await retrieved("who checks the databases for overtime?", Vocabulary({1: WORDS}))
    assert misspelt.passages == correct.passages
    assert (misspelt.question.text, misspelt.question.idf) == (correct.question.text, correct.question.idf)
    assert misspelt.question.corrections == (Correction("databsaes", "databases"),)
    assert misspelt.question.unknown == correct.question.unknown == ("overtime",)
    assert correct.question.corrections == ()
    assert misspelt.embedded == 2 * correct.embedded


async def test_a_corrected_word_is_looked_up_in_the_glossary() -> None:
    """Shows that a misspelt glossary term is expanded, and a term of the glossary is not corrected."""
    entry = GlossaryEntry("databases", ("backup",))
    misspelt = await retrieved("databsaes", Vocabulary({1: WORDS}), entry)
    assert [one.text for one in misspelt.question.synonyms] == ["backup"]
    vocabulary = Vocabulary({1: WORDS})
    explained = await retrieved("databsaes", vocabulary, GlossaryEntry("databsaes", ("backup",)))
    assert (explained.question.unknown, vocabulary.asked) == ((), 0)


async def test_both_of_two_equally_close_words_are_searched() -> None:
    """Shows that the second one counts like a synonym of the first."""
    found = await retrieved("chekcs parkigg", Vocabulary({1: {"parking": 3, "parkign": 2, "checks": 1}}))
    assert found.question.text == "checks parking"
    assert [one.text for one in found.question.synonyms] == ["parkign"]


async def test_a_question_of_known_words_needs_no_vocabulary() -> None:
    """Shows that an ordinary question needs no vocabulary."""
    vocabulary = Vocabulary({1: WORDS})
    found = await retrieved("who checks the databases?", vocabulary)
    assert (found.question.unknown, vocabulary.asked) == ((), 0)


async def test_an_empty_channel_has_no_unknown_words() -> None:
    """Shows that in an empty channel no word is reported as missing."""
    found = await HybridRetriever(Shelf(), HashEmbedder(), AnswerSettings()).retrieve(
        Question("q", "overtime?", make_channel(), ASKED_AT)
    )
    assert found.question.unknown == ()
