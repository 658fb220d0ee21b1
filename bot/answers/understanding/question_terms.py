"""The terms of a question: its language, content terms, exact words and synonyms.

Function words (stop words) do not count when the coverage of a question by a text is measured. The list is
English first; from the other languages it has all function words that are not English words, and a few that
are, because they open and join questions there. Codes, numbers and names survive every ranking. The channel's
glossary adds synonyms, at a lower weight. An uncertain language is None: a few words are enough, as in "wie
lange?", and an English question is never taken for one in another language.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, permutations
from uuid import UUID

from bot.answers.understanding.language_lexicon import (
    CONTRACTIONS,
    DETERMINERS,
    FUNCTION_WORDS,
    OTHER_WORDS,
    SUBJECTS,
    VERB_FIRST,
)
from bot.core.models import AnalyzedQuestion, Language, Passage, Question, Synonym
from storage.chat_models import GlossaryEntry
from storage.text.analyzer import analyze, contains_phrase, fold, phrase_terms, umlaut_spellings
from storage.text.token_counts import is_frequent_word

_WORD = re.compile(r"[^\W_]+(?:[-_./:,&][^\W_]+)*")
_SENTENCE_END = re.compile(r"[.?!]\s*$")

# How often a search repeats each term of the question itself; a synonym's term appears once.
OWN_WEIGHT = 2

# Limit for glossary synonyms of one question; further ones are ignored.
MAX_SYNONYMS = 24

_WORD_OR_MARK = re.compile(r"[^\W_]+|[^\w\s'’-]")
_TOKEN = re.compile(r"[^\W_]+(?:[-/.@][^\W_]+)*")
_SPANISH_MARK = re.compile(r"[¿¡]\w")
# Known words that decide the language of a text; in one of up to three words, one is enough.
MIN_KNOWN_WORDS = 2
# An all-caps text with more words than this is emphasis, not an abbreviation.
MIN_UPPERCASE_WORDS = 2
# Minimum share of known words: a text in an unsupported language contains fewer.
MIN_LEAD_SHARE = 0.1

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

# Maximum weight of names, codes and thread context together, as a share of the other words' weight, where the
# subject of a text is not in question.
NAME_SHARE = 0.3

_YEAR = re.compile(r"\b(?:19|20)\d{2}\b")
# 'How often are they tested (nightly backups)?': context of a follow-up, or added by a person.
_BACKGROUND = re.compile(r"\([^()]{3,}\)\W*$")


def exact_words(question: str) -> list[str]:
    """Return the codes, numbers, acronyms and names in a question, as written.

    A name is a capitalised word that does not open a sentence.
    """
    return [
        match[0]
        for match in _WORD.finditer(question)
        if _is_exact(match[0]) or (match[0][0].isupper() and not _opens_sentence(question, match.start()))
    ]


def rare_words(question: AnalyzedQuestion, rarity: float) -> list[str]:
    """Return the exact words of a question with an IDF above ``rarity``; others are not selective."""
    idf = question.idf
    return [
        word
        for word in exact_words(question.text)
        if max((idf.get(term, 0.0) for term in analyze(word)[:1]), default=0.0) > rarity
    ]


def lookup_terms(question: str) -> frozenset[str]:
    """Return the terms of a question that is a mere lookup, as "What is NPRM?"; else none.

    A word counts as a name if it is written as one, or if it is not a frequent word.
    """
    content, names = weighted_terms(question), exact_words(question)
    words = [word for match in _WORD.finditer(question) if analyze(word := match[0])[0] in content]
    is_lookup = all(word in names or not (_owners_of(word) or is_frequent_word(word)) for word in words)
    return frozenset(analyze(word)[0] for word in words) if is_lookup else frozenset()


def subject_words(text: str, words: Iterable[str], language: Language) -> list[str]:
    """Select the words that may be the subject of a question: its names, codes and nouns.

    Function words and words for the form of an answer are left out, and so are words in a verb's position:
    before an article with its noun, or after a subject pronoun. German capitalises nouns.
    """
    tokens = _WORD_OR_MARK.findall(text)
    small = _small_words(language)
    plain = small | _verbs([fold(token).casefold() for token in tokens], small, language)
    names = set(exact_words(text))
    has_capital_nouns = language is Language.GERMAN and any(token[0].isupper() for token in tokens[1:])

    def is_subject(word: str) -> bool:
        if word in names:
            return True
        is_plain = fold(word).casefold() in plain or analyze(word)[0] in FORM_TERMS
        return not is_plain and (word[0].isupper() or not has_capital_nouns)

    return [word for word in words if is_subject(word)]


def _small_words(language: Language) -> set[str]:
    """Return a language's function words; the English ones without those of other languages, as "door"."""
    small = set(FUNCTION_WORDS[language].split())
    if language is Language.ENGLISH:
        small -= set[str]().union(
            *(FUNCTION_WORDS[one].split() for one in FUNCTION_WORDS if one is not language)
        )
    return small


def _verbs(tokens: Sequence[str], small: Container[str], language: Language) -> set[str]:
    """Return the words in a verb's position: before an article and a noun, or next to a subject.

    "trips a year" has none, as "year" is on the list of small words.
    """
    determiners, subjects = (some.get(language, "").split() for some in (DETERMINERS, SUBJECTS))
    triples = zip(tokens, tokens[1:], tokens[2:], strict=False)
    verbs = {
        verb
        for verb, article, noun in triples
        if article in determiners and (noun in determiners or noun not in small)
    }
    order = tokens[::-1] if language in VERB_FIRST else tokens
    return verbs | {verb for subject, verb in pairwise(order) if subject in subjects}


def holds_exactly(words: Sequence[str]) -> Callable[[Passage], bool]:
    """Return a predicate: True for a passage that contains one of these words whole."""
    if not words:
        return lambda _: False
    found = re.compile(
        rf"(?<!\w)(?:{'|'.join(re.escape(fold(word)) for word in words)})(?!\w)", re.IGNORECASE
    )

    def holds(passage: Passage) -> bool:
        whole = "\n".join((passage.publication.title, *passage.heading_path, passage.text))
        return found.search(fold(whole)) is not None

    return holds


def identified_documents(words: Sequence[str], passages: Sequence[Passage]) -> dict[UUID, float]:
    """Return, per publication, the share (0-1) of these words in its passages; empty if all are equal."""
    holders = {word: holds_exactly([word]) for word in words}
    held: dict[UUID, set[str]] = {}
    for passage in passages:
        known = held.setdefault(passage.publication.id, set())
        known.update(word for word in words if word not in known and holders[word](passage))
    shares = {id_: len(known) / len(words) for id_, known in held.items() if words}
    return shares if len(set(shares.values())) > 1 else {}


def _is_exact(word: str) -> bool:
    return any(char.isdigit() for char in word) or sum(char.isupper() for char in word) > 1


def _opens_sentence(text: str, start: int) -> bool:
    before = text[:start].strip("\"'“‘(¿¡ ")
    return not before or _SENTENCE_END.search(before) is not None


def find_synonyms(
    question: str, entries: Iterable[GlossaryEntry], *, is_wide: bool = False
) -> tuple[Synonym, ...]:
    """Return the glossary's synonyms for the words of a question, in glossary order.

    ``is_wide``: every entry applies in both directions.
    """
    terms = analyze(question)
    found: dict[tuple[str, ...], Synonym] = {}
    for asked, said in _pairs(entries, is_wide):
        if contains_phrase(terms, asked_terms := phrase_terms(asked)) and not contains_phrase(
            terms, said_terms := phrase_terms(said)
        ):
            found.setdefault(said_terms, Synonym(asked_terms, said_terms, said))
    return tuple(found.values())[:MAX_SYNONYMS]


def searched_terms(terms: Sequence[str], synonyms: Sequence[Synonym]) -> tuple[str, ...]:
    """Return the terms to search for: the question's own, repeated, and those of its synonyms."""
    if not synonyms:
        return tuple(terms)
    others = dict.fromkeys(term for synonym in synonyms for term in synonym.equivalents)
    return (*OWN_WEIGHT * tuple(terms), *(term for term in others if term not in terms))


def embedded_text(question: str, synonyms: Sequence[Synonym]) -> str:
    """Return the text to embed: the question, with its synonyms in parentheses."""
    return f"{question} ({', '.join(synonym.text for synonym in synonyms)})" if synonyms else question


def synonym_matches(held: Container[str], synonyms: Sequence[Synonym]) -> frozenset[str]:
    """Return the question's terms that a text with the terms ``held`` covers by synonyms."""
    if not synonyms:
        return frozenset()
    said = (synonym for synonym in synonyms if all(term in held for term in synonym.equivalents))
    return frozenset(term for synonym in said for term in synonym.terms)


def _pairs(entries: Iterable[GlossaryEntry], is_wide: bool) -> Iterator[tuple[str, str]]:
    """Yield (term of a question, its equivalent)."""
    for entry in entries:
        if entry.is_mutual or is_wide:
            yield from permutations((entry.term, *entry.words), 2)
        else:
            yield from ((entry.term, word) for word in entry.words)


def _foreign() -> set[str]:
    """Return the terms of the other languages' function words that are not English ones as well.

    Words of up to three letters are left out: some are names ("EU", "AI"), and in a document of their
    language every chunk contains them, so that their IDF is 0 anyway.
    """
    words = {word for small in FUNCTION_WORDS.values() for word in small.split() if len(word) > 3}
    return set(analyze(" ".join(words))) - set(analyze(FUNCTION_WORDS[Language.ENGLISH]))


FUNCTION_TERMS = frozenset(analyze(fold(" ".join((_ENGLISH, _OTHERS, *CONTRACTIONS.values()))))) | _foreign()


def weighted_terms(text: str) -> set[str]:
    """Return the content terms of a question, which are those that are not function words.

    Function words count if there is nothing else, and where they are written like a name ("IT").
    """
    terms = set(analyze(text))
    exact = terms & {term for word in exact_words(text) for term in analyze(word)}
    if not (_content(terms, umlaut_spellings(text)) or exact):
        return terms
    return _content(terms, {}) | exact


# Words for the form of an answer: the steps to restore a file are under "Restore", not under "steps".
FORM_TERMS = frozenset(
    analyze(
        "compare comparison versus vs steps instructions list lists table tables"
        " warning warnings caution cautions schritte liste tabelle"
        " warnung etapes tableau avertissement pasos lista tabla advertencia passaggi tabella avvertenza"
        " passos tabela aviso stappen lijst tabel waarschuwing"
    )
)


def _content(terms: Iterable[str], other_spellings: Mapping[str, str]) -> set[str]:
    """Remove function words, other spellings and, unless nothing is left, words for the form of an answer."""
    content = set(terms) - FUNCTION_TERMS - set(other_spellings.values())
    return content - FORM_TERMS or content


class QuestionTerms:
    """The weighted content terms of a question, and the years it names."""

    def __init__(self, question: AnalyzedQuestion) -> None:
        other_spellings = umlaut_spellings(question.text)
        content = weighted_terms(question.text) - set(other_spellings.values())
        # Content term -> IDF; a question of function words alone is judged by all its words.
        self.weights = {term: idf for term, idf in question.idf.items() if term in content or not content}
        # The same, with little weight for names, codes and context: they are the subject, not what is asked
        # about it.
        self.aspects = self._aspects(question.text)
        self._synonyms = (
            *question.synonyms,
            *(Synonym((term,), (other,), other) for term, other in other_spellings.items()),
        )
        self._years = frozenset(_YEAR.findall(question.text))

    def coverage(self, terms: Container[str]) -> float:
        """Return the share (0-1) of the question's IDF weight that a text's terms cover."""
        return self._share(self.weights, terms)

    def aspect_coverage(self, terms: Container[str]) -> float:
        """Return the same by ``aspects``, for texts that are not judged by their subject alone."""
        return self._share(self.aspects, terms)

    def _aspects(self, text: str) -> dict[str, float]:
        names = {term for word in exact_words(text) for term in analyze(word)}
        background = self.weights.keys() - set(analyze(_BACKGROUND.sub("", text)))
        known = {term: idf for term, idf in self.weights.items() if term in names | background}
        asked = {term: idf for term, idf in self.weights.items() if term not in known}
        share = NAME_SHARE * min(1.0, sum(asked.values()) / (sum(known.values()) or 1.0)) if asked else 1.0
        return asked | {term: share * idf for term, idf in known.items()}

    def contradicts(self, text: str) -> bool:
        """True if the text names years, but none of those in the question."""
        named = set(_YEAR.findall(text))
        return bool(self._years and named and not self._years & named)

    def _share(self, weights: Mapping[str, float], terms: Container[str]) -> float:
        """Return the covered share of ``weights``; a synonym covers its term as well."""
        otherwise = synonym_matches(terms, self._synonyms)
        total = sum(weights.values())
        held = sum(weight for term, weight in weights.items() if term in terms or term in otherwise)
        return held / total if total else 0.0


def _owners() -> dict[str, list[Language]]:
    owners: dict[str, list[Language]] = {}
    for language in FUNCTION_WORDS:
        lexicons = (FUNCTION_WORDS, OTHER_WORDS, CONTRACTIONS)
        for word in {word for words in lexicons for word in words.get(language, "").split()}:
            owners.setdefault(word, []).append(language)
    return owners


_OWNERS = _owners()


def is_lexicon_word(word: str, language: Language) -> bool:
    """True for a function word, a contraction or one of the most common words of a language."""
    return language in _owners_of(word)


def _owners_of(word: str) -> Sequence[Language]:
    return _OWNERS.get(fold(word).casefold(), ())


def language_of(text: str) -> Language | None:
    """Detect the language of a text; None if it is uncertain or not supported."""
    words = _words(text)
    counts = Counter(owner for word in words for owner in _OWNERS.get(word, ()))
    counts.update(Language.SPANISH for _ in _SPANISH_MARK.finditer(text))
    ranked = counts.most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    best, found = ranked[0]
    is_enough = found >= MIN_KNOWN_WORDS or len(words) <= 3
    return best if is_enough and found >= MIN_LEAD_SHARE * len(words) else None


def _words(text: str) -> list[str]:
    """Return the folded words, without codes and acronyms ("IT" is not "it"); all-caps texts have none."""
    tokens = [re.split("[-/]", token) for token in _TOKEN.findall(fold(text))]
    is_shouted = text.isupper() and len(tokens) > MIN_UPPERCASE_WORDS
    return [
        part.casefold()
        for parts in tokens
        if is_shouted or not any(map(_is_literal, parts))
        for part in parts
    ]


def _is_literal(part: str) -> bool:
    return not part.isalpha() or (part.isupper() and len(part) > 1)


def spoken_language(question: Question) -> Language | None:
    """Return the language of a question; if uncertain, of the latest question before it in its thread."""
    asked = (question.text, *(turn.question for turn in reversed(question.history)))
    return next(filter(None, map(language_of, asked)), None)
