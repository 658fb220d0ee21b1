"""The terms of a question, taken apart once for all the texts it is compared with, and its function words.

Function words ask or join and name nothing: they weigh nothing when it is judged what a text covers. English
first; of the other languages all small words that English does not write for something else, and a few that
it does, because they open and join questions there.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping

from bot.core.models import AnalyzedQuestion, Language, Synonym
from bot.core.understanding.answer_types import answer_type_patterns
from bot.core.understanding.exact_terms import exact_words
from bot.core.understanding.language import SMALL_WORDS
from bot.core.understanding.synonyms import synonym_matches
from storage.text.analyzer import analyze, fold, spellings

_ENGLISH = """
a about according again all also am an and any anyone anything are as at back be been being but by
can could did do document documents does doing done during each either else every far file files
find for from get gets give gives go got had happen happens has have having he her here hers him his
how i if in into is it its itself kind know let list long many may me mean might mine more most much
must my need no not of off often on one or other our ours out over own page pages pdf per please
provide say says shall she should show so some someone something such tell than that the their
theirs them then there these they thing things this those to too under until up us use used very
want was way we were what whats when where which while who whom whose why will with within without
would you your yours
"""
_OTHERS = """
was wer wie wo wann warum welche welcher welches ist sind der die das den dem ein eine einen und oder
in im mit von zu fur auf bei nach aus wird werden hat haben kann man es sie ich wir
que qui quoi quel quelle quels quelles quand comment pourquoi combien est sont le la les un une des du
de et ou a au aux en dans pour par sur avec il elle on nous vous je ce cette
cual cuales cuando como donde quien cuanto cuantos es son el los las una unos y o del al con por para
"""


def _foreign() -> set[str]:
    """Terms of the other languages' small words, without those that are English words, too.

    The shortest are left out: some are names ("EU", "AI"), and a document in their language holds them
    in every chunk, so that they weigh nothing anyway.
    """
    words = {word for small in SMALL_WORDS.values() for word in small.split() if len(word) > 3}
    return set(analyze(" ".join(words))) - set(analyze(SMALL_WORDS[Language.ENGLISH]))


FUNCTION_TERMS = frozenset(analyze(fold(_ENGLISH + _OTHERS))) | _foreign()

NAME_SHARE = 0.3
"""What is left of the weight of names, codes and what a thread spoke of before, where it is not in question
what a text is about: together at most this share of the other words' weight."""

_YEAR = re.compile(r"\b(?:19|20)\d{2}\b")
_BACKGROUND = re.compile(r"\([^()]{3,}\)\W*$")
"""'How often are they tested (nightly backups)?': what a follow-up carries over, or a person adds."""


def weighted_terms(text: str) -> set[str]:
    """The terms of a question that weigh something; those of function words take the longest to count.

    They weigh in a question that has nothing else; and where they are written as a name is, as in "IT".
    """
    terms = set(analyze(text))
    if not _content(terms, spellings(text)):
        return terms
    return terms - FUNCTION_TERMS | (terms & {term for word in exact_words(text) for term in analyze(word)})


def _content(terms: Iterable[str], other_spellings: Mapping[str, str]) -> set[str]:
    """Without function words, and each word in one of its spellings."""
    return set(terms) - FUNCTION_TERMS - set(other_spellings.values())


class QuestionTerms:
    """A question's content words, the years it names, and the kinds of answer that fit."""

    def __init__(self, question: AnalyzedQuestion) -> None:
        other_spellings = spellings(question.text)
        content = _content(question.idf, other_spellings)
        self.weights = {term: idf for term, idf in question.idf.items() if term in content or not content}
        """Content term -> idf; a question of function words alone is judged by all its words."""
        self.aspects = self._aspects(question.text)
        """The same, where names, codes and background count little: they say of what, not what about it."""
        self._synonyms = (
            *question.synonyms,
            *(Synonym((term,), (other,), other) for term, other in other_spellings.items()),
        )
        self._years = frozenset(_YEAR.findall(question.text))
        self._fitting = answer_type_patterns(question.text)

    def coverage(self, terms: Container[str]) -> float:
        """Share (0-1) of the question's idf weight that a text's terms cover."""
        return self._share(self.weights, terms)

    def aspect_coverage(self, terms: Container[str]) -> float:
        """The same share by ``aspects``: for texts that are judged by more than by what they are about."""
        return self._share(self.aspects, terms)

    def fit(self, text: str) -> float:
        """Share (0-1) of the kinds of answer asked for that a text could be; 0 when none is known."""
        return sum(bool(answer.search(text)) for answer in self._fitting) / max(len(self._fitting), 1)

    def _aspects(self, text: str) -> dict[str, float]:
        names = {term for word in exact_words(text) for term in analyze(word)}
        background = self.weights.keys() - set(analyze(_BACKGROUND.sub("", text)))
        known = {term: idf for term, idf in self.weights.items() if term in names | background}
        asked = {term: idf for term, idf in self.weights.items() if term not in known}
        share = NAME_SHARE * min(1.0, sum(asked.values()) / (sum(known.values()) or 1.0)) if asked else 1.0
        return asked | {term: share * idf for term, idf in known.items()}

    def contradicts(self, text: str) -> bool:
        """The text speaks of years, and of none that the question names."""
        named = set(_YEAR.findall(text))
        return bool(self._years and named and not self._years & named)

    def _share(self, weights: Mapping[str, float], terms: Container[str]) -> float:
        """A term counts as covered by its synonyms, too."""
        otherwise = synonym_matches(terms, self._synonyms)
        total = sum(weights.values())
        held = sum(weight for term, weight in weights.items() if term in terms or term in otherwise)
        return held / total if total else 0.0
