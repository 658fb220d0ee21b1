"""Location of quotes: found despite typographic differences, and nowhere else."""

from __future__ import annotations

import re

import pytest
from fakes.core import make_evidence, make_passage
from harness.tables import for_each
from hypothesis import given
from hypothesis import strategies as st

from bot.answers.verification.claims import find_spans, locate
from bot.core.models import Quote
from storage.text.sentences import split_units

WORDS = st.sampled_from(
    "the office shall offer different first-class daily back-up “quoted” files at 2:00 AM 1,204.5 kg §4 "
    "SOP-IT-04 5–10 naïve coöperate Straße résumé 50% (optional) it’s".split()
)
SENTENCES = st.lists(WORDS, min_size=4, max_size=12).map(lambda words: " ".join(words) + ".")
TEXTS = st.lists(SENTENCES, min_size=2, max_size=6, unique=True)
MUTATIONS = {
    "whitespace": lambda text: text.replace(" ", "\n  "),
    "ligatures": lambda text: text.replace("ffi", "ﬃ").replace("ff", "ﬀ").replace("fi", "ﬁ"),
    "dashes": lambda text: text.replace("-", "‑").replace("–", "-"),
    "quotation marks": lambda text: text.replace("“", '"').replace("”", '"').replace("’", "'"),
    "soft hyphens": lambda text: re.sub(r"(?<=[a-z]{2})(?=[a-z]{2})", "\u00ad", text),
    "case": str.upper,
    "decomposed accents": lambda text: text.replace("ï", "i\u0308").replace("é", "e\u0301"),
}


@given(TEXTS, st.data())
def test_any_sentence_is_located_at_its_offsets(sentences: list[str], data: st.DataObject) -> None:
    """Every sentence of a text is located at its own offsets."""
    text = "\n".join(sentences)
    sentence = data.draw(st.sampled_from(sentences))
    start = text.index(sentence)
    assert start in [found for found, _ in find_spans(sentence, text)]


@given(TEXTS, st.data(), st.sampled_from(sorted(MUTATIONS)))
def test_typography_makes_no_difference(sentences: list[str], data: st.DataObject, kind: str) -> None:
    """A quote that differs only in typography is found at the same place."""
    text = "\n".join(sentences)
    sentence = data.draw(st.sampled_from(sentences))
    assert find_spans(MUTATIONS[kind](sentence), text) == find_spans(sentence, text)


@given(TEXTS, st.data(), st.sampled_from(sorted(MUTATIONS)))
def test_typography_of_the_page_makes_no_difference(
    sentences: list[str], data: st.DataObject, kind: str
) -> None:
    """A plain quote is found on a page with other typography."""
    sentence = data.draw(st.sampled_from(sentences))
    assert find_spans(sentence, MUTATIONS[kind]("\n".join(sentences)))


@given(TEXTS, SENTENCES)
def test_absent_words_are_never_found(sentences: list[str], stranger: str) -> None:
    """A sentence with a word that the text does not contain is not found."""
    assert find_spans(f"{stranger[:-1]} zeppelin.", "\n".join(sentences)) == []


@given(TEXTS)
def test_every_unit_of_a_text_can_be_quoted(sentences: list[str]) -> None:
    """Every unit of the splitter can be located as a quote."""
    text = "\n".join(sentences)
    for unit in split_units(text):
        spans = find_spans(text[unit.start : unit.end], text)
        assert any(start - unit.start in range(3) for start, _ in spans)


@given(TEXTS, st.data())
def test_a_copied_quote_is_located_like_a_searched_one(sentences: list[str], data: st.DataObject) -> None:
    """Shows that a known offset is only a shortcut and never changes the result."""
    text = "\n".join(sentences)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    searched = [span for span in find_spans(text[start:end], text) if span[0] == start]
    located = locate(Quote(1, text[start:end], start=start), make_evidence(make_passage(text)))
    if searched:
        assert located is not None
        assert (located.start, located.end) == searched[0]


@for_each(
    ("quote", "text"),
    [
        ("art", "It will start."),
        ("10 units", "They hold 110 units."),
        ("510 units", "They hold 5-10 units."),
        ("5 degrees", "At -5 degrees it freezes."),
        ("141 days", "After 14¹ days."),
        ("105 cells", "Seed 10⁵ cells."),
        ("10-5 mol", "Add 10⁻⁵ mol."),
        ("21/2 hours", "Wait 2½ hours."),
        ("", "Some text."),
        ("…", "Some text."),
    ],
)
def test_parts_of_words_and_numbers_are_no_quotes(quote: str, text: str) -> None:
    """A quote begins and ends at word boundaries, and a dash between numbers counts."""
    spans = find_spans(quote, text)
    assert [text[start:end] for start, end in spans if text[start - 1 : start] != "-"] == []


def test_a_word_cut_at_the_line_end_is_found() -> None:
    """A code or word hyphenated at a line break matches the whole word."""
    text = "See SOP-\nIT-04 for the re-\ncovery of data."
    assert find_spans("SOP-IT-04 for the recovery", text) == [(4, 33)]


def test_punctuation_at_the_ends_is_ignored() -> None:
    """Quotation marks, periods and ellipses around the quote are ignored."""
    assert find_spans("“… backups run daily …”.", "All backups run daily, at night.") == [(4, 21)]


def test_text_without_spaces_can_be_quoted_in_parts() -> None:
    """Scripts without spaces have no word boundaries."""
    assert find_spans("每天凌晨两点", "备份每天凌晨两点运行。") == [(2, 8)]


def test_the_text_decides_rather_than_the_passage_number() -> None:
    """A quote is found in its passage, even if the answerer named another one."""
    evidence = make_evidence(
        make_passage("Backups run daily."), make_passage("Travel costs money.", ordinal=1)
    )
    located = locate(Quote(1, "Travel costs money"), evidence)
    assert located is not None
    assert located.passage is evidence[1].passage


def test_the_named_passage_wins_among_equals() -> None:
    """The named one of two passages with the words is cited."""
    evidence = make_evidence(
        make_passage("Doors close at six."), make_passage("Doors close at six.", ordinal=1)
    )
    located = locate(Quote(2, "Doors close at six."), evidence)
    assert located is not None
    assert located.passage.ordinal == 1


def test_a_short_ambiguous_quote_is_not_located() -> None:
    """No highlight is better than a wrong one: a short text that occurs twice proves nothing."""
    assert locate(Quote(1, "30 days"), make_evidence(make_passage("30 days here, 30 days there."))) is None


def test_an_offset_distinguishes_repeated_words() -> None:
    """A copied quote's offset selects one of two equal places."""
    located = locate(
        Quote(1, "30 days", start=14), make_evidence(make_passage("30 days here, 30 days there."))
    )
    assert located is not None
    assert located.start == 14


def test_whole_words_at_an_offset_are_compared() -> None:
    """Shows that other words of the same length at the given offset are not accepted."""
    evidence = make_evidence(make_passage("Pumps stop. Pumps halt."))
    located = locate(Quote(1, "Pumps halt", start=0), evidence)
    assert located is not None
    assert located.start == 12
    assert locate(Quote(1, "Pumps burn", start=0), evidence) is None


def test_a_quote_is_on_the_page_with_most_of_its_text() -> None:
    """A sentence across a page break is cited on the page with most of its characters, boxes included."""
    text = "It ends\non the following page where most of it stands."
    evidence = make_evidence(make_passage(text, page=4, last_page=5), page_starts=((0, 4), (8, 5)))
    located = locate(Quote(1, text), evidence)
    assert located is not None
    assert located.page == 5
    assert len(located.boxes) == 1
    assert located.boxes[0].y0 == pytest.approx(0.01)


def test_boxes_cover_the_quote_and_no_other_words() -> None:
    """Each line has one rectangle, from the first to the last word of the quote."""
    located = locate(
        Quote(1, "beta gamma delta"), make_evidence(make_passage("alpha beta\ngamma delta epsilon"))
    )
    assert located is not None
    assert [(box.x0, box.x1) for box in located.boxes] == [(0.006, 0.01), (0.0, 0.011)]
