"""Corrects misspelt words of a question towards the vocabulary of its channel's live documents.

The metric is edit distance with adjacent transpositions as one edit: Damerau, "A Technique for Computer
Detection and Correction of Spelling Errors" (1964). A correctly spelt word is never corrected, however close
another one is: of 241 correctly spelt words that were in none of the searched documents, 51 had such a
neighbour ("planes": "plans"), and 3 of these were not frequent words. Nor is a word corrected towards a typo
in a document ("microsope"), and no correction adds or removes a negation.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from rapidfuzz import process
from rapidfuzz.distance import OSA

from bot.answers.understanding.question_terms import is_lexicon_word
from bot.answers.verification.negation_lexicon import NEGATIONS
from bot.core.models import Correction, Language, Synonym
from storage.documents.vocabulary import Vocabularies
from storage.errors import InfrastructureError
from storage.models import Channel
from storage.text.analyzer import analyze, fold
from storage.text.token_counts import frequent_words, is_frequent_word
from storage.web_pages.keyword_gate import keyword_terms
from storage.web_pages.web_sources import WebSourcesFile

# Shorter words cannot be corrected reliably, and are seldom the subject of a question.
MIN_LETTERS = 4
# Minimum length for one edit and for two; a shorter word may only have swapped letters.
MIN_LETTERS_FOR_ONE, MIN_LETTERS_FOR_TWO = 5, 8
# Up to this many capitals are an abbreviation, which resembles many others without meaning them.
MAX_ABBREVIATION = 5
# Equally close corrections of a word that are searched for.
MAX_CANDIDATES = 2

# A word of letters, or several joined by hyphens; no part of a code, an address or 'don't'.
_WORD = re.compile(r"(?<![\w@./&+#-])[^\W\d_]+(?:-[^\W\d_]+)*(?=['’]s\b|(?![\w@/&'’+#-]|[.:]\w))")

_DENIALS = frozenset[str]().union(*(words.denies for words in NEGATIONS.values()))
_DENYING_PREFIXES = ("non", "un")

log = logging.getLogger(__name__)


def unknown_words(
    text: str, frequencies: Mapping[str, int], explained: Collection[str] = frozenset()
) -> tuple[str, ...]:
    """Return the content words of a question, as typed, of which no form occurs in the channel.

    Args:
        frequencies: term -> number of chunks with it; words whose terms are not among its keys are ignored.
        explained: terms that the glossary covers.
    """

    def is_known(term: str) -> bool:
        return term in explained or frequencies.get(term, 1) > 0

    def stands(word: str) -> bool:
        whole, *parts = map(is_known, analyze(word))
        joined = is_known(analyze(word.replace("-", ""))[0])
        return whole or joined or (bool(parts) and all(parts))

    found = (
        part
        for match in _WORD.finditer(text)
        for part in match[0].split("-")
        if len(part) >= MIN_LETTERS and not stands(match[0]) and not stands(part)
    )
    return tuple(dict.fromkeys(found))


class SpellingCorrector:
    """Corrects words towards the vocabulary of the channel they are asked in."""

    def __init__(
        self,
        vocabularies: Vocabularies,
        is_word: Callable[[str], bool] = is_frequent_word,
        web_sources: WebSourcesFile | None = None,
    ) -> None:
        """Create a corrector.

        ``is_word``: True if a word is spelt correctly, in any context. ``web_sources``: a keyword that opens
        a domain for the channel is never corrected.
        """
        self._vocabularies = vocabularies
        self._is_word = is_word
        self._web_sources = web_sources

    async def correct(
        self, channel: Channel, words: Iterable[str], language: Language = Language.ENGLISH
    ) -> tuple[Correction, ...]:
        """Return the corrections of ``words``, none of which occurs in the channel."""
        typed = [word for word in words if self._may_be_misspelt(word, language)]
        if typed and self._web_sources:
            keywords = keyword_terms((await self._web_sources.known()).domains_for(channel))
            typed = [word for word in typed if keywords.isdisjoint(analyze(word))]
        if not typed:
            return ()
        try:
            vocabulary = await self._vocabularies.words(channel.id)
        except InfrastructureError as error:
            log.warning("spelling correction skipped: channel=%d: %s", channel.id, type(error).__name__)
            return ()
        return await asyncio.to_thread(
            find_corrections, typed, vocabulary, has_word_list=language is Language.ENGLISH
        )

    def _may_be_misspelt(self, word: str, language: Language) -> bool:
        is_known = is_lexicon_word(word, language) or fold(word).lower() in _DENIALS
        return not (is_known or (word.isupper() and len(word) <= MAX_ABBREVIATION) or self._is_word(word))


def find_corrections(
    typed: Iterable[str], vocabulary: Mapping[str, int], *, has_word_list: bool = True
) -> tuple[Correction, ...]:
    """Return the words of a vocabulary (lower case -> count) closest to each of ``typed``, best first.

    ``has_word_list``: frequent words of the question's language are already left out. Without one, only
    swapped letters, or one edit in a long word, count as a misspelling.
    """
    folded = {word: word if word.isascii() else fold(word) for word in vocabulary}
    return tuple(
        Correction(word, _in_case(word, nearest))
        for word in typed
        for nearest in _nearest_words(fold(word).lower(), folded, vocabulary, has_word_list)
    )


def _nearest_words(
    typed: str, folded: Mapping[str, str], counts: Mapping[str, int], has_word_list: bool
) -> list[str]:
    """Return up to two equally close words of different stems; none if the word itself occurs.

    At equal distance an anagram is closer, since swapping two letters is the likelier slip.
    """
    is_long = len(typed) >= MIN_LETTERS_FOR_TWO
    limit = 2 if is_long and has_word_list else 1
    may_change = is_long or (has_word_list and len(typed) >= MIN_LETTERS_FOR_ONE)
    near = process.extract(typed, folded, scorer=OSA.distance, score_cutoff=limit, limit=None)
    ranked = sorted(
        ((distance, sorted(word) != sorted(typed)), -counts[written], written)
        for word, distance, written in near
        if _may_mean(typed, word) and (may_change or sorted(word) == sorted(typed))
    )
    ranked = [one for one in ranked if not _is_document_typo(one[-1], counts, has_word_list)]
    if not ranked or ranked[0][0] == (0, False) or fold(ranked[0][-1]) in _DENIALS:
        return []
    by_stem: dict[str, str] = {}
    for rank, _, written in ranked:
        if rank == ranked[0][0]:
            by_stem.setdefault(analyze(written)[0], written)
    return list(by_stem.values())[:MAX_CANDIDATES]


def _is_document_typo(word: str, counts: Mapping[str, int], has_word_list: bool) -> bool:
    """True if a document's word is probably a typo: it occurs once, close to a frequent word of another stem.

    Of 343 words that occur once in one collection, this rejects 69, half of them rightly; none of the
    evaluation's 75 misspelt words loses its correction.
    """
    if counts[word] > 1 or is_frequent_word(word):
        return False
    known = [frequent_words()] if has_word_list else []
    known.append(tuple(other for other, count in counts.items() if count > 1))
    stem = analyze(word)[0]
    return any(
        _may_mean(word, other) and analyze(other)[0] != stem
        for words in known
        for other, _, _ in process.extract(word, words, scorer=OSA.distance, score_cutoff=1, limit=None)
    )


def _may_mean(typed: str, word: str) -> bool:
    """True if ``typed`` may be a slip for ``word``.

    A slip seldom changes the first letter, except by swapping the first two; a negating prefix must be the
    same.
    """
    is_near = typed[0] == word[0] or typed[:2] == word[1::-1]
    return is_near and (sorted(typed) == sorted(word) or _denial(typed) == _denial(word))


def _denial(word: str) -> str:
    """Return the negating prefix of a word, if any: "undated" is not "updated"."""
    return next((prefix for prefix in _DENYING_PREFIXES if word.startswith(prefix)), "")


def _in_case(typed: str, word: str) -> str:
    return word[0].upper() + word[1:] if typed[0].isupper() else word


def correct_text(text: str, corrections: Iterable[Correction]) -> str:
    """Replace each misspelt word of a question by its best correction."""
    best = {one.typed: one.word for one in reversed(tuple(corrections))}
    if not best:
        return text
    misspelt = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, best))})(?![^\W_])")
    return misspelt.sub(lambda match: best[match[0]], text)


def alternatives(corrections: Sequence[Correction]) -> Iterator[Synonym]:
    """Yield the second-best corrections, as synonyms of the best ones."""
    best: dict[str, str] = {}
    for one in corrections:
        first = best.setdefault(one.typed, one.word)
        if first != one.word:
            yield Synonym(tuple(analyze(first)), tuple(analyze(one.word)), one.word)
