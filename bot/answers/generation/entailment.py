"""Checks that a model's sentence follows from the passages: returns what is marked for it, or its fault.

The quotes that a model chose are a hint. The fewest sentences, items and rows that cover most of its words
are marked; a sentence that says more than they and the question do is rejected. One in another language than
its quotes can only be compared by names, numbers and codes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.answers.understanding.answer_types import RequiredAnswer, asks_whether
from bot.answers.understanding.question_terms import FUNCTION_TERMS, exact_words, synonym_matches
from bot.answers.understanding.subjects import is_of_another_document
from bot.answers.verification.claims import (
    ABSTAINS,
    UNFOUND,
    VerifiedClaim,
    plain_sentence,
)
from bot.answers.verification.contradiction import (
    ASSERTS,
    DENIES,
    denies,
    find_contradiction,
    have_same_beginning,
    is_excluded,
    may_deny,
    read_languages,
    split_answer,
)
from bot.answers.verification.facts import unsupported, without_facts
from bot.answers.verification.marks import Mark, find_marks
from bot.answers.verification.number_lexicon import MONTHS
from bot.core.models import AnalyzedQuestion, Claim, Evidence, LocatedQuote
from storage.text.analyzer import analyze, fold

# Parts whose facts are compared: those that cover most words of a sentence.
MAX_FACT_CANDIDATES = 24

# Maximum number of sentences, items or rows marked for one sentence.
MAX_MARKS = 3

# Bonus for a part that the model quoted, where a word in every part weighs 0.1; and the share of its weight
# that a word counts if it is only in headings or title.
HINT_BONUS, CONTEXT_WEIGHT = 0.5, 0.5

# Minimum share of the weight of a sentence's question words that the marked passages cover.
ABOUT = 0.5

# Minimum share of the question: in the marks for a bare yes or no, in their passages for a bare number.
ANSWERED = 2 / 3

# Minimum share of question words in a translated sentence without a name or number of its quotes.
TRANSLATED_SHARE = 0.5

# Shorter words are titles, units and "I".
MIN_NAME_CHARS = 3

# Placeholder for a sentence in the prompts, which small models copy.
PLACEHOLDER = "a sentence"

EMPTY = "the sentence is empty."
ASKS = "the sentence is a question."
REPEATS = "the sentence only repeats the question."
UNRELATED = "the quotes are off topic."
DENIED = "the quotes do not support a no."

# Offers alternatives, such as "2 or 3 years".
_CHOICE = re.compile(r"\b(?:or|oder|ou|o)\b", re.IGNORECASE)

# Framing words: "According to the passage".
_REPORTED = frozenset(
    analyze(
        "according states stated mentions mentioned specifies specified indicates indicated describes "
        "described passage passages document documents section text following"
    )
)
# Weightless in a question, but not where they tell a person what to do.
_REQUESTS = frozenset(analyze("give gives provide tell please use let"))
_LIGHT = (FUNCTION_TERMS | _REPORTED) - _REQUESTS

_WORD = re.compile(r"[^\W_]+(?:[-_./'&+][^\W_]+)*")
_WITH = re.compile(r"\b(?:with|mit|avec|con|com|met)\s+(?P<word>[^\W_]+)", re.IGNORECASE)
_WITHOUT = re.compile(r"\b(?:without|ohne|sans|sin|senza|sem|zonder)\s+(?P<word>[^\W_]+)", re.IGNORECASE)
# Statement that the passages do not say it, in the languages of the replies; matches folded text.
_ABSTENTION = re.compile(
    r"""\b(?:not|never|nowhere|no|cannot|unable|nicht|kein\w*|nirgends|pas|aucune?|ningun\w*|non|nessun\w*|nao
        |nenhum\w*|niet|geen)\b(?:\W+\w+){0,4}?\W+
    (?P<word>answer\w*|available|contain\w*|defin\w+|describ\w+|details?|determin\w+|discuss\w*|documents?|given
        |indicat\w+|information|listed|mention\w*|passages?|provid\w+|specif\w+|stat(?:ed?|es)|texts?
        |angaben?|angegeben|aufgefuhrt|beantwort\w*|beschrieben|enthalten|erwahnt|festgelegt|genannt|informationen
        |contien\w+|fourni\w*|indiqu\w+|precis\w+|contien\w+|especific\w+|indica\w*|informacion|mencion\w+
        |fornisc\w+|informazion\w+|menziona\w*|contem|fornec\w+|informac\w+
        |aangegeven|beschreven|genoemd|informatie|opgenomen|vermeld)\b""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Word:
    """A content word of a sentence."""

    text: str
    # Terms of the analyzer: the whole word, then its parts.
    terms: tuple[str, ...]

    def is_in(self, held: Collection[str], *, is_inflected: bool = False) -> bool:
        """True if the word, or each of its parts, is among these terms; ``is_inflected``: in any form."""
        whole, *parts = self.terms
        if whole in held or (parts and all(part in held or part in _LIGHT for part in parts)):
            return True
        return is_inflected and any(have_same_beginning(whole, term) for term in held)


def find_form_fault(text: str, located: Sequence[LocatedQuote]) -> str | None:
    """Return the fault of a sentence that states nothing: it is empty, a question, or an abstention."""
    if not any(map(str.isalnum, text)) or text.rstrip(".").casefold() == PLACEHOLDER:
        return EMPTY
    if text.rstrip("\"'”’)] ").endswith("?"):
        return ASKS
    if not located:
        return UNFOUND
    is_said = any(_ABSTENTION.search(fold(one.quote)) for one in located)
    return ABSTAINS if _ABSTENTION.search(fold(text)) and not is_said else None


class Entailment:
    """Checks sentences against the passages of one question."""

    def __init__(self, question: AnalyzedQuestion, evidence: Sequence[Evidence]) -> None:
        self._question = question
        self._evidence = evidence
        unknown = {term for word in question.unknown for term in analyze(word)}
        self._asked = frozenset(analyze(question.text)) - unknown

    def check(self, claim: Claim, located: Sequence[LocatedQuote]) -> VerifiedClaim | str:
        """Return the sentence with its marks, or its fault.

        Args:
            claim: as the model wrote it.
            located: where its quotes were found.
        """
        text = plain_sentence(claim.text)
        answer, statement = split_answer(text)
        words = _content_words(statement)
        facts = unsupported(text, ())
        if not answer and not words and not facts:
            return EMPTY
        if text.rstrip("\"'”’)] ").endswith("?"):
            return ASKS
        sentence = _Sentence(text, answer, words, facts)
        if self._is_translated(text, located):
            return self._check_translated(sentence, located)
        marks = self._marks(sentence, located)
        if not marks and not located:
            return UNFOUND
        abstention = _ABSTENTION.search(fold(text))
        if abstention and not any(analyze(abstention["word"])[0] in one.part.terms for one in marks):
            return ABSTAINS
        return self._fault(sentence, marks) or self._verified(sentence, marks)

    def _fault(self, sentence: _Sentence, marks: Sequence[Mark]) -> str | None:
        """Return the fault of a sentence in the language of its marks; None if it has none."""
        held = frozenset[str]().union(*(one.part.terms | one.context for one in marks))
        is_inflected = "en" not in read_languages(sentence.prepared)
        new = [word for word in sentence.words if not word.is_in(self._asked, is_inflected=is_inflected)]
        missing = [word.text for word in new if not word.is_in(held, is_inflected=is_inflected)]
        missing += unsupported(sentence.text, [text for one in marks for text in one.sources()])
        if missing:
            return f"not in the quotes: {', '.join(missing)}"
        if not marks:
            return UNFOUND
        is_choice = bool(sentence.facts) and _CHOICE.search(self._question.text) is not None
        says_new = bool(new or is_choice or unsupported(sentence.text, [self._question.text]))
        is_answer = sentence.answer or denies(sentence.text) or asks_whether(self._question.text)
        if not says_new and not is_answer:
            return REPEATS
        is_about = self._is_about(sentence, marks, held) if says_new else self._says_all(sentence, held)
        cited = {one.item.passage.publication.document_id for one in marks}
        if not is_about or is_of_another_document(self._question, self._evidence, cited):
            return UNRELATED
        return None

    def _is_about(self, sentence: _Sentence, marks: Sequence[Mark], held: Collection[str]) -> bool:
        """True if the passages are about a sentence's question words, and it is about the question.

        They must mention each of its names, so that a rule for one plan is not attributed to its twin; for a
        bare number they must be about the question itself.
        """
        passages = [one.item.passage.terms for one in marks]
        taken = [word for word in sentence.words if word.is_in(self._asked)]
        names = {term for name in _names(sentence.text) for term in analyze(name)}
        if self._share([word for word in taken if word.terms[0] in names], *passages) < 1:
            return False
        asked, required = _content_words(self._question.text), RequiredAnswer(self._question.text)
        if not sentence.words:
            return self._share(asked, *passages) >= ANSWERED
        return self._share(taken, *passages) >= ABOUT and (
            self._share(asked, held, {term for word in sentence.words for term in word.terms}) > 0
            or (bool(required) and required.is_held_by(*(one.part.text for one in marks)))
            or self._share(asked, *passages) >= ABOUT
        )

    def _says_all(self, sentence: _Sentence, held: Collection[str]) -> bool:
        """True if the marks cover the question, which a yes or no that adds nothing asserts."""
        if sentence.words:
            return self._share(sentence.words, held) == 1
        return self._share(_content_words(self._question.text), held) >= ANSWERED

    def _share(self, words: Sequence[_Word], *held: Container[str]) -> float:
        """Return the share (0-1) of the words' idf weight that these terms, or synonyms, cover."""
        weights = {word.terms[0]: self._question.idf.get(word.terms[0], 1.0) for word in words}
        known = {term for term in weights if any(term in terms for terms in held)}
        for terms in held:
            known |= synonym_matches(terms, self._question.synonyms)
        total = math.fsum(weights.values()) or 1.0
        if known >= weights.keys():
            return 1.0
        return math.fsum(weights[term] for term in known & weights.keys()) / total

    def _verified(self, sentence: _Sentence, marks: Sequence[Mark]) -> VerifiedClaim | str:
        """Return the sentence with its marks, unless they contradict it."""
        quotes = tuple(quote for one in marks for quote in one.located())
        said = sentence.text
        if sentence.answer and not sentence.words:
            said = self._question.text.rstrip("? ")
        if sentence.answer != "no" or sentence.words:
            if turned := find_contradiction(said, quotes):
                return turned
        says_why = sentence.facts or any(not word.is_in(self._asked) for word in sentence.words)
        if turned := _contradicts_with_or_without(sentence.text, " ".join(one.part.text for one in marks)):
            return turned
        is_denied = any(denies(one.part.text) for one in marks) or any(map(is_excluded, quotes))
        if sentence.answer == "no" and not (says_why or is_denied):
            return DENIED
        if denies(sentence.text) and not is_denied and not any(may_deny(one.part.text) for one in marks):
            return DENIES
        return VerifiedClaim(sentence.text, quotes)

    def _marks(self, sentence: _Sentence, located: Sequence[LocatedQuote]) -> list[Mark]:
        """Return the fewest parts that cover most of a sentence: the best one, then what it lacks."""
        parts = find_marks(self._evidence, located)
        words = sentence.words or _content_words(self._question.text)
        facts = sentence.facts
        weights = _weights(words, parts)
        marks: list[Mark] = []
        while parts and len(marks) < MAX_MARKS:
            scored = [(_gain(one, words, weights), one) for one in parts]
            scored = scored if marks else sorted(scored, key=lambda pair: -pair[0])[:MAX_FACT_CANDIDATES]
            best_gain, best = max(
                ((gain + _facts_held(sentence.text, facts, one) * _most(parts), one) for gain, one in scored),
                key=lambda pair: pair[0] + HINT_BONUS * pair[1].is_hinted * bool(pair[0]),
            )
            if best_gain <= 0:
                break
            marks.append(best)
            held = frozenset[str]().union(*(one.part.terms | one.context for one in marks))
            words = [word for word in words if not word.is_in(held) and not word.is_in(self._asked)]
            facts = unsupported(sentence.text, [text for one in marks for text in one.sources()])
            if not words and not facts:
                break
            parts = [
                one
                for one in parts
                if one not in marks
                and (one.is_hinted or one.item is best.item)
                and _is_close(one, sentence, facts)
            ]
        return sorted(marks, key=lambda one: (one.item.number, one.part.start))

    def _is_translated(self, text: str, located: Sequence[LocatedQuote]) -> bool:
        """True if a sentence is in the language of the question, and its quotes are in another one."""
        passages = [quote.passage for quote in located] or [item.passage for item in self._evidence]
        said = read_languages(fold(text).lower())
        printed = read_languages(fold(" ".join(passage.text for passage in passages)).lower())
        is_other = bool(said) and bool(printed) and not set(said) & set(printed)
        return is_other and self._question.language.value in said

    def _check_translated(self, sentence: _Sentence, located: Sequence[LocatedQuote]) -> VerifiedClaim | str:
        """Check names, numbers and codes, and that it has one from its quotes or is about the question."""
        if _ABSTENTION.search(fold(sentence.text)):
            return ABSTAINS
        if not located:
            return UNFOUND
        marks = [one for one in find_marks(self._evidence, located) if one.is_hinted][:MAX_MARKS]
        sources = [text for one in marks for text in one.sources()]
        if missing := unsupported(sentence.text, sources):
            return f"not in the quotes: {', '.join(missing)}"
        held = frozenset(analyze(" ".join(sources)))
        names = [_Word(name, tuple(analyze(name))) for name in _names(sentence.text)]
        if missing := [name.text for name in names if not name.is_in(held) and not name.is_in(self._asked)]:
            return f"not in the quotes: {', '.join(missing)}"
        has_facts = sentence.facts or any(name.is_in(held) for name in names)
        asked = sum(word.is_in(self._asked, is_inflected=True) for word in sentence.words)
        if not has_facts and asked < TRANSLATED_SHARE * len(sentence.words):
            return UNRELATED
        return VerifiedClaim(sentence.text, tuple(quote for one in marks for quote in one.located()))


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A parsed sentence of a model."""

    text: str
    # ``yes`` or ``no`` if it begins with one, in any language; else ''.
    answer: str
    words: Sequence[_Word]
    # Numbers, dates, frequencies, codes and addresses.
    facts: Sequence[str]

    @property
    def prepared(self) -> str:
        return fold(self.text).lower()


def _content_words(text: str) -> list[_Word]:
    """Return the content words; those with a digit are codes, which are checked as facts."""
    capitals = {word for word in exact_words(text) if word.isupper()}
    found: dict[str, _Word] = {}
    for word in _WORD.findall(without_facts(text)):
        terms = tuple(analyze(word))
        is_light = not terms or (terms[0] in _LIGHT and word not in capitals)
        if not is_light and not any(map(str.isdigit, word)):
            found.setdefault(terms[0], _Word(word, terms))
    return list(found.values())


def _contradicts_with_or_without(sentence: str, marked: str) -> str | None:
    """Return ``ASSERTS`` or ``DENIES`` if one text says "with waivers", the other "without waivers"."""
    (said, missing), (held, lacking) = (
        [
            {term for found in words.finditer(fold(text)) for term in analyze(found["word"])}
            for words in (_WITH, _WITHOUT)
        ]
        for text in (sentence, marked)
    )
    if said & (lacking - held):
        return ASSERTS
    return DENIES if missing & (held - lacking) else None


def _names(text: str) -> list[str]:
    """Return acronyms, and capitalised words inside a sentence except in German, which capitalises nouns."""
    is_german = "de" in read_languages(fold(text).lower())
    return [word for word in exact_words(text) if word.isupper() or not is_german]


def unknown_names(text: str, source: str) -> list[str]:
    """Return a text's names that a source lacks, even inflected, abbreviated or spelled out."""
    held, words = frozenset(analyze(source)), re.findall(r"[^\W\d_]+", source)
    initials = "".join(word[0] for word in words).lower()
    acronyms = "".join(word for word in words if word.isupper())
    return [
        name
        for name in _names(without_facts(text))
        if len(name) >= MIN_NAME_CHARS
        and name.isalpha()
        and name.lower() not in MONTHS
        and not _Word(name, tuple(analyze(name))).is_in(held, is_inflected=True)
        and not (name.lower() in initials if name.isupper() else name[0] in acronyms)
    ]


def _weights(words: Iterable[_Word], parts: Sequence[Mark]) -> Mapping[str, float]:
    """Return the rarity of each word among the parts, at least a little."""
    counts = {word.text: sum(word.is_in(one.part.terms) for one in parts) for word in words}
    return {text: 0.1 + math.log((len(parts) + 1) / (count + 1)) for text, count in counts.items()}


def _gain(mark: Mark, words: Iterable[_Word], weights: Mapping[str, float]) -> float:
    return math.fsum(
        weights[word.text]
        * (1.0 if word.is_in(mark.part.terms) else CONTEXT_WEIGHT * word.is_in(mark.context))
        for word in words
    )


def _is_close(mark: Mark, sentence: _Sentence, missing: Sequence[str]) -> bool:
    """True if a part has more of a sentence than one word or number, which may be a coincidence."""
    words = sum(word.is_in(mark.part.terms) for word in sentence.words)
    return words > 1 or (words > 0 and _facts_held(sentence.text, missing, mark) > 0)


def _facts_held(sentence: str, facts: Sequence[str], mark: Mark) -> int:
    """Count these facts of a sentence that a part states."""
    if not facts:
        return 0
    missing = unsupported(sentence, mark.sources())
    return sum(fact not in missing for fact in facts)


def _most(parts: Sequence[Mark]) -> float:
    """Return the weight of a word that only one part contains."""
    return math.log(len(parts) + 1)
