"""Words a follow-up question so that it can be searched for without its thread: pure, and without a model.

The words that are carried over are those of the last question as it was understood; what a question contrasts
with takes the place of what it stands against where that can be seen, and stands beside it where not.

The documents of one family, such as two plans or two versions: their names share most of their words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from uuid import UUID

from bot.core.rewriting.follow_up_detection import FollowUp, FollowUpKind, content_words
from bot.core.rewriting.follow_up_lexicon import ASKING, LEADING
from bot.core.understanding.exact_terms import exact_words
from bot.core.understanding.question_terms import FUNCTION_TERMS
from storage.chat_models import Turn
from storage.models import DocumentStatus
from storage.text.analyzer import analyze, fold

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Name:
    """What a document is called, by its title or its file."""

    document: UUID
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NameSwap:
    """The words that tell a document from its sibling, and those that the sibling has in their place."""

    document: UUID
    own: tuple[str, ...]
    others: tuple[str, ...]


def names_of(documents: Collection[DocumentStatus]) -> list[Name]:
    """Every name of the documents that answer."""
    live = [document for document in documents if document.state == "live"]
    return [
        Name(document.document, words)
        for document in live
        for name in (document.title, PurePosixPath(document.file).stem)
        if (words := tuple(_WORD.findall(name)))
    ]


def swap_names(text: str, wanted: str, names: Sequence[Name], cited: Collection[UUID]) -> str | None:
    """The text about the sibling that ``wanted`` names, or about the only other one; None when none is meant.

    Args:
        text: a question about one document of a family.
        wanted: how the other one is spoken of: by its own words, or as "the other".
        names: what the channel's documents are called.
        cited: documents that the text was answered from, for a text that names none.
    """
    is_other = re.search(r"\b(?:other|another|andere[nrsm]?|autre|otr[oa])\b", fold(wanted), re.I) is not None
    said, asked = _low(text), _low(wanted)
    pairs = list(_name_swaps([name for name in names if _touches(name, said, cited)], names))
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


def _touches(name: Name, said: Collection[str], cited: Collection[UUID]) -> bool:
    return name.document in cited or not _low(name.words).isdisjoint(said)


def _replaced(text: str, exchange: NameSwap) -> str | None:
    """The text with the sibling's words; None when its own do not stand together."""
    own = re.compile(r"\W+".join(map(re.escape, exchange.own)), re.IGNORECASE)
    replaced = own.sub(" ".join(exchange.others), text, count=1)
    return replaced if replaced != text else None


def _key(exchange: NameSwap) -> frozenset[str]:
    return _low(exchange.others)


def _low(text: str | Sequence[str]) -> frozenset[str]:
    words = _WORD.findall(text) if isinstance(text, str) else text
    return frozenset(fold(word).lower() for word in words)


MAX_CARRIED_WORDS = 25
"""Words of an earlier question that a later one takes along."""

_CARRIED = re.compile(r"\(([^()]{3,})\)\W*$")
_KEPT = LEADING | frozenset(
    "the a an and or not no over into between der die das le la les el los las".split()
)
"""Function words that a topic keeps inside, so that it can be read."""
_SETTING = re.compile(r"\s(?:in|at|on|during|for)\s(?:the\s)?[\w-]+(?:\s[\w-]+)?\W*$", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d{2}")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_ARTICLE = re.compile(r"^(?:the|a|an|der|die|das|le|la|les|el|los|las)\s+", re.IGNORECASE)
_ONE = re.compile(r"\b(?:ones?)\b", re.IGNORECASE)


def rewrite_standalone(follow_up: FollowUp, last: Turn, names: Sequence[Name] = ()) -> str:
    """The question as it can be understood without the turn before it.

    Args:
        follow_up: a question that leans on it.
        last: the turn before.
        names: what the channel's documents are called, for "the other plan".
    """
    asked = follow_up.text.strip(" ?!.,;:")
    if follow_up.kind is FollowUpKind.REFERENCE:
        return _about(asked, topic(last))
    base = last.standalone.strip().rstrip("?!. ")
    sibling = swap_names(base, asked, names, last.documents)
    changes = (_other_number, _other_one, _other_phrase, _other_kind)
    found = (text for change in changes if (text := change(base, asked)))
    return f"{(sibling or next(found, f'{base}, {asked}')).rstrip('? ')}?"


def topic(turn: Turn) -> str:
    """What a turn was about: what its question had carried over, else that question without the asking."""
    carried = _CARRIED.search(turn.standalone) if turn.standalone != turn.question else None
    if carried:
        return carried[1]
    words = turn.standalone.strip().rstrip("?!. ").split()
    places = [place for place, word in enumerate(words) if content_words(word)]
    if not places:
        return " ".join(words)
    inside = words[places[0] : places[-1] + 1]
    return " ".join([word for word in inside if _is_topical(word)][:MAX_CARRIED_WORDS])


def _about(asked: str, subject: str) -> str:
    """A question with its subject behind it, as far as it does not name that itself."""
    known = set(analyze(asked))
    is_known = all(set(analyze(word)) <= known for word in content_words(subject))
    return f"{asked}?" if is_known else f"{asked} ({subject})?"


def _other_number(base: str, changed: str) -> str | None:
    """'And the 18 one?' after a question that names 15: another number, and nothing else."""
    new, old = _NUMBER.findall(changed), _NUMBER.findall(base)
    beside = content_words(_NUMBER.sub(" ", changed))
    rest = [word for word in beside if not set(analyze(word)) <= _terms(base)]
    if len(new) != 1 or rest:
        return None
    alike = [number for number in old if bool(_YEAR.fullmatch(number)) == bool(_YEAR.fullmatch(new[0]))]
    if len(alike) != 1:
        return None
    return re.sub(rf"(?<![\d.,]){re.escape(alike[0])}(?![\d])", new[0], base, count=1)


def _other_one(base: str, changed: str) -> str | None:
    """'What about the one in France, how low was it?': another thing of the kind, and a whole question."""
    own = [place for place in _asking_places(changed) if place]
    if not _ONE.search(changed) or not own:
        return None
    named = set(exact_words(base))
    kind = " ".join(word for word in topic(Turn(base, base, "")).split() if word.strip(",;:'’s") not in named)
    return _about(changed, kind.strip(" ,;:")) if content_words(kind) else changed


def _other_phrase(base: str, changed: str) -> str | None:
    """'And for contractors?' after '... for employees': the same preposition opens what is replaced."""
    words = base.split()
    opener = fold(changed.split(maxsplit=1)[0]).lower()
    places = [place for place, word in enumerate(words) if place and fold(word).lower() == opener]
    if opener not in LEADING or len(places) != 1:
        return None
    start = places[0]
    if opener in {"if", "when", "wenn", "si", "cuando"}:
        setting = _SETTING.search(" ".join(words[start:]))
        return f"{' '.join(words[:start])} {changed}{setting[0].rstrip() if setting else ''}"
    ends = [place for place in range(start + 1, len(words)) if fold(words[place]).lower() in LEADING]
    return " ".join([*words[:start], changed, *words[ends[0] if ends else len(words) :]])


def _other_kind(base: str, changed: str) -> str | None:
    """'The Plus plan?' after '... the Standard plan': the words before the same noun are replaced."""
    changed = _ARTICLE.sub("", changed)
    words, new = base.split(), changed.split()
    if len(content_words(changed)) < 2 or not content_words(new[-1]):
        return None
    heads = [place for place, word in enumerate(words) if analyze(word) and analyze(word) == analyze(new[-1])]
    if len(heads) != 1:
        return None
    start = heads[0]
    while start and content_words(words[start - 1]):
        start -= 1
    return " ".join([*words[:start], changed, *words[heads[0] + 1 :]])


def _asking_places(text: str) -> list[int]:
    """Where words stand that open a question."""
    return [place for place, word in enumerate(text.split()) if fold(word).lower().strip(",") in ASKING]


def _is_topical(word: str) -> bool:
    return bool(content_words(word)) or fold(word).lower().strip(",") in _KEPT


def _terms(text: str) -> set[str]:
    return set(analyze(text)) | FUNCTION_TERMS
