"""Detects by rules that a question depends on its thread, and rewrites it as standalone; uses no model.

It may depend on it by its opening, by a pronoun, or by having few words. A follow-up that only names
something else ("and for contractors?") becomes the last question, as it was understood, with the new noun in
place of the most similar one, or with the name of a sibling document, such as the other of two plans. To any
other follow-up the subject of the last question is appended.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from uuid import UUID

from bot.answers.understanding.question_terms import FUNCTION_TERMS, exact_words
from storage.chat_models import Turn
from storage.models import DocumentStatus
from storage.text.analyzer import analyze, fold

_WORD = re.compile(r"[^\W_]+")
_JOINED_WORD = re.compile(r"[^\W_]+(?:[-_./&+][^\W_]+)*")
# "can't" is clipped to "can", because "ca" is a pronoun.
_CLIPPED = re.compile(r"(?<=\w)['’](?:s|re|ll|d|ve|m)\b|(?<!ca)n['’]t\b|(?<=can)['’]t\b")
# Openers of a follow-up that says only what differs: "and for contractors?".
_CONTRAST = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|thanks?|thank you|great|so|well|yes|no|oh|danke|merci|gracias)[\s,.!]+)*"
    r"(?P<opener>(?:(?:and|und|et|y)\s+)?"
    r"(?:what about|how about|same for|was ist mit|qu'en est-il de|que tal)\b"
    r"|(?:and|but|or|also|und|aber|et|mais|y|pero|ed?|ma|mas|maar)\b[\s,]+)\s*",
    re.IGNORECASE,
)
_PRONOUNS = frozenset(
    """
    it its they them their theirs he him his she her hers davon dafur damit dazu daruber dieser dieses
    il elle ils elles cela ca ello eso esto
    """.split()
)
# A pronoun after this many content words of its question may refer to one of them.
NAMING_WORDS = 3
# A question with fewer content words is incomplete, unless one is a name or a code; one that has exactly
# these and no other words ("part-time employees?") may be.
MIN_CONTENT_WORDS = 2

# A noun of one word has no head to share.
MIN_HEADED_WORDS = 2
# Maximum words that are carried over from an earlier question.
MAX_CARRIED_WORDS = 25

# Question words: a text that contains one is not a mere noun.
ASKING_WORD = re.compile(
    r"""\b(?:wh(?:at|o|om|ose|en|ere|y|ich)|how|w(?:as|er|en|em|ie|o|ann|arum|ieso)|welche[mnrs]?
    |qu(?:e|i|oi|and|els?|elles?|ien(?:es)?|anto|ando|ale|ali|al|ais|em)|combien|comment|pourquoi
    |cu(?:al(?:es)?|ando|ant[oa]s?)|como|donde|che|chi|come|dove|perche|quant[aeio]|onde
    |wat|waar|wanneer|waarom|hoe|welke?)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_CARRIED = re.compile(r"\(([^()]{3,})\)\W*$")


def match_contrast_opener(text: str) -> re.Match[str] | None:
    """Return the opener of a follow-up that says only what differs from the previous question."""
    return _CONTRAST.match(fold(text))


def may_depend_on_thread(text: str) -> bool:
    """True if a question may need its thread to be understood."""
    if match_contrast_opener(text):
        return True
    words = _words_of(text)
    if any(len(_naming(words[:place])) < NAMING_WORDS for place in _pronouns(words)):
        return True
    naming = _naming(words)
    is_named = any(len(word) > 1 for word in exact_words(text))
    return (
        len(naming) < MIN_CONTENT_WORDS or len(naming) == len(words) == MIN_CONTENT_WORDS
    ) and not is_named


def is_incomplete(text: str) -> bool:
    """True if a question says little more than a pronoun: "who approves it?"."""
    words = _words_of(text)
    return bool(_pronouns(words)) and len(_naming(words)) < MIN_CONTENT_WORDS


def _pronouns(words: Sequence[str]) -> list[int]:
    """Return the indexes of pronouns among words; "IT" is none."""
    return [
        place
        for place, word in enumerate(words)
        if fold(word).lower() in _PRONOUNS and not (len(word) > 1 and word.isupper())
    ]


def content_words(text: str) -> list[str]:
    """Return the content words of a text, as written."""
    return _naming(_words_of(text))


def noun_phrases(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each run of content words separated only by whitespace, in order."""
    spans: list[tuple[int, int]] = []
    for match in _JOINED_WORD.finditer(text):
        if not _naming([match[0]]):
            continue
        if spans and text[spans[-1][1] : match.start()].isspace():
            spans[-1] = (spans[-1][0], match.end())
        else:
            spans.append(match.span())
    return spans


def replaceable_spans(text: str, words: int) -> list[tuple[int, int]]:
    """Return (start, end) of what a noun of ``words`` words may replace: noun phrases and runs in them.

    A run of content words may contain a verb, as in "approves annual leave".
    """
    spans = noun_phrases(text)
    for start, end in tuple(spans):
        placed = [match.span() for match in _JOINED_WORD.finditer(text, start, end)]
        rows = [(row[0][0], row[-1][1]) for row in _windows(placed, words)]
        spans += [row for row in rows if row != (start, end)]
    return spans


def _windows(items: Sequence[tuple[int, int]], size: int) -> Iterator[Sequence[tuple[int, int]]]:
    return (items[at : at + size] for at in range(len(items) - size + 1))


def span_of_same_head(text: str, noun: str) -> tuple[int, int] | None:
    """Find a noun with equally many words and the same first or last one: annual leave, sick leave."""
    words = _words_of(fold(noun).casefold())
    if len(words) < MIN_HEADED_WORDS:
        return None
    for start, end in replaceable_spans(text, len(words)):
        others = _words_of(fold(text[start:end]).casefold())
        if len(others) == len(words) and (others[0] == words[0]) != (others[-1] == words[-1]):
            return start, end
    return None


def new_noun(text: str) -> str | None:
    """Return the noun that a follow-up consists of, as in "and for contractors?"; None if it asks more."""
    contrast = match_contrast_opener(text)
    rest = text[contrast.end() :] if contrast else text
    spans = noun_phrases(rest)
    if len(spans) != 1 or ASKING_WORD.search(fold(rest)) or _pronouns(_words_of(rest)):
        return None
    start, end = spans[0]
    return rest[start:end]


def _naming(words: list[str]) -> list[str]:
    return [word for word in words if not set(analyze(word)) <= FUNCTION_TERMS]


def _words_of(text: str) -> list[str]:
    return _JOINED_WORD.findall(_CLIPPED.sub(" ", text))


@dataclass(frozen=True, slots=True)
class Name:
    """A name of a document, from its title or its file."""

    document: UUID
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NameSwap:
    """Words that distinguish a document from its sibling, and the sibling's words in their place."""

    document: UUID
    own: tuple[str, ...]
    others: tuple[str, ...]


def names_of(documents: Collection[DocumentStatus]) -> list[Name]:
    """Return every name of the live documents."""
    live = [document for document in documents if document.state == "live"]
    return [
        Name(document.document, words)
        for document in live
        for name in (document.title, PurePosixPath(document.file).stem)
        if (words := tuple(_WORD.findall(name)))
    ]


def swap_names(text: str, wanted: str, names: Sequence[Name], cited: Collection[UUID]) -> str | None:
    """Return the text about the sibling that ``wanted`` names, or about the only other one; else None.

    Args:
        wanted: reference to the sibling: by its distinctive words, or as "the other".
        cited: documents that the text was answered from, in case it names none.
    """
    is_other = re.search(r"\b(?:other|another|andere[nrsm]?|autre|otr[oa])\b", fold(wanted), re.I) is not None
    said, asked = _low(text), _low(wanted)
    touched = [name for name in names if name.document in cited or not _low(name.words).isdisjoint(said)]
    pairs = list(_name_swaps(touched, names))
    spoken = [pair for pair in pairs if _low(pair.own) <= said]
    meant = [pair for pair in spoken if is_other or _low(pair.others) <= asked]
    if len({_key(pair) for pair in meant}) == 1:
        return _replaced(text, meant[0])
    behind = {_key(pair): pair for pair in pairs if pair.document in cited}
    if is_other and not spoken and len(behind) == 1:
        (pair,) = behind.values()
        return f"{text.rstrip(' ?.!')}, {' '.join(pair.others)}?"
    return None


def _name_swaps(asked: Sequence[Name], names: Sequence[Name]) -> Iterator[NameSwap]:
    for one in asked:
        for other in names:
            own = tuple(word for word in one.words if fold(word).lower() not in _low(other.words))
            others = tuple(word for word in other.words if fold(word).lower() not in _low(one.words))
            shared = len(one.words) - len(own)
            if own and others and shared >= max(len(own), len(others)):
                yield NameSwap(one.document, own, others)


def _replaced(text: str, exchange: NameSwap) -> str | None:
    """Return the text with the sibling's words; None if those they replace are not adjacent."""
    own = re.compile(r"\W+".join(map(re.escape, exchange.own)), re.IGNORECASE)
    replaced = own.sub(" ".join(exchange.others), text, count=1)
    return f"{replaced}?" if replaced != text else None


def _key(exchange: NameSwap) -> frozenset[str]:
    return _low(exchange.others)


def _low(text: str | Sequence[str]) -> frozenset[str]:
    words = _WORD.findall(text) if isinstance(text, str) else text
    return frozenset(fold(word).lower() for word in words)


def rewrite_for_sibling(text: str, last: Turn, names: Sequence[Name]) -> str | None:
    """Return the last question about the sibling document that a follow-up means; None if it means none.

    ``names``: names of the channel's documents, for "and the other plan?".
    """
    if not match_contrast_opener(text):
        return None
    return swap_names(last_question(last), _asked(text), names, last.documents)


def replace_noun(base: str, span: tuple[int, int], noun: str) -> str:
    """Return a question with another noun in place of one of its ``noun_phrases``."""
    start, end = span
    return f"{base[:start]}{noun}{base[end:]}?"


def add_subject(text: str, last: Turn) -> str:
    """Append the subject of the last question to a follow-up, unless it contains it already."""
    asked, subject = _asked(text), topic(last)
    known = set(analyze(asked))
    is_known = all(set(analyze(word)) <= known for word in content_words(subject))
    return f"{asked}?" if is_known else f"{asked} ({subject})?"


def last_question(last: Turn) -> str:
    """Return the question of the last turn, as it was understood, without its question mark."""
    return last.standalone.strip().rstrip("?!. ")


def _asked(text: str) -> str:
    """Return a follow-up without its opener."""
    contrast = match_contrast_opener(text)
    return (text[contrast.end() :] if contrast else text).strip(" ¿?!.,;:") or text


def topic(turn: Turn) -> str:
    """Return the topic of a turn: what its question carried over, else its content words."""
    carried = _CARRIED.search(turn.standalone) if turn.standalone != turn.question else None
    if carried:
        return carried[1]
    words = last_question(turn).split()
    places = [place for place, word in enumerate(words) if content_words(word)]
    if not places:
        return " ".join(words)
    return " ".join(words[places[0] : places[-1] + 1][:MAX_CARRIED_WORDS])
