"""Does a question lean on the thread before it, and how: by words alone, in favour of leaving it as it is."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bot.core.rewriting.follow_up_lexicon import (
    ABOUT,
    ALWAYS_BACK,
    ASKING,
    ASPECTS,
    BOUNDARIES,
    COMPARED,
    DA_WORDS,
    EXISTING,
    FILLERS,
    FULL_IT,
    JOINING,
    JOINTS,
    LEADING,
    NEW_TOPIC,
    OWNERS,
    POINTERS,
    PRONOUNS,
    THIS_TIME,
)
from bot.core.understanding.exact_terms import exact_words
from bot.core.understanding.question_terms import FUNCTION_TERMS
from storage.text.analyzer import analyze, fold

_WORD = re.compile(r"[^\W_]+(?:[-_./&+][^\W_]+)*")
_CLIPPED = re.compile(r"(?<=\w)['’](?:s|re|ll|d|ve|m)\b|n['’]t\b")

MAX_FRAGMENT_WORDS = 3
"""A joined or pointing question of no more content words says too little by itself."""


class FollowUpKind(StrEnum):
    """How a question leans on the one before it."""

    ALONE = "alone"
    UNSURE = "unsure"
    """It can be understood alone, and may mean more in its thread."""
    CONTRAST = "contrast"
    """It says only what is different now: 'and for contractors?'"""
    REFERENCE = "reference"
    """It asks something else of the same subject: 'how long does that take?'"""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question of a thread, taken apart."""

    kind: FollowUpKind
    text: str
    """What it asks: of one that leans, without openers such as 'ok' and 'what about'."""


def read_follow_up(text: str, said: Collection[str]) -> FollowUp:
    """What a question of a thread needs of it.

    Args:
        text: the question as typed.
        said: the content terms of what was said before.
    """
    bare = FILLERS.sub("", unicodedata.normalize("NFC", f"{text.strip()} ")).strip(" ¿¡")
    if new := NEW_TOPIC.match(bare):
        return FollowUp(FollowUpKind.ALONE, bare[new.end() :] or text)
    if not _words(bare):
        return FollowUp(FollowUpKind.ALONE, text)
    if about := ABOUT.match(fold(bare)):
        return FollowUp(FollowUpKind.CONTRAST, _rest(bare, about.end()))
    joined = JOINING.match(fold(bare))
    rest = _rest(bare, joined.end()) if joined else bare
    kind = _follow_up_kind(rest, said, is_joined=joined is not None)
    return FollowUp(kind, text if kind in {FollowUpKind.ALONE, FollowUpKind.UNSURE} else rest)


def content_words(text: str) -> list[str]:
    """The words that name something, as written."""
    return [word for word in _words(text) if not set(analyze(word)) <= FUNCTION_TERMS]


def _follow_up_kind(text: str, said: Collection[str], *, is_joined: bool) -> FollowUpKind:
    content = content_words(text)
    subject = [word for word in content if not set(analyze(word)) <= ASPECTS]
    if not _opens_question(text):
        return _of_fragment(text, subject, is_joined=is_joined)
    if _points_back(text) or not subject:
        return FollowUpKind.REFERENCE
    if exact_words(text):
        return FollowUpKind.ALONE
    if len(content) <= MAX_FRAGMENT_WORDS and (is_joined or _names_known(text, said) or _compares(text)):
        return FollowUpKind.REFERENCE
    return FollowUpKind.UNSURE if len(content) <= MAX_FRAGMENT_WORDS + 1 else FollowUpKind.ALONE


def _of_fragment(text: str, subject: Sequence[str], *, is_joined: bool) -> FollowUpKind:
    """Of words that are no whole question: what they contrast with is missing, if they are few."""
    if is_joined or _first(text) in LEADING or _points_back(text):
        return FollowUpKind.CONTRAST
    return FollowUpKind.CONTRAST if len(subject) < MAX_FRAGMENT_WORDS else FollowUpKind.ALONE


def _names_known(text: str, said: Collection[str]) -> bool:
    """It speaks of 'the form' after a form was spoken of."""
    named = re.findall(r"\b(?:the|der|die|das|le|la|les|el|los|las)\s+([\w-]+)", fold(text).lower())
    return any(set(analyze(word)) & set(said) - FUNCTION_TERMS for word in named)


def _compares(text: str) -> bool:
    """It compares with, or comes after, something that it does not name."""
    low = EXISTING.sub(" ", fold(text).lower())
    return COMPARED.search(low) is not None


def _opens_question(text: str) -> bool:
    return _first(text) in ASKING


def _first(text: str) -> str:
    return next(iter(_low_words(text)), "")


def _points_back(text: str) -> bool:
    """Whether one of its words means something that it does not name itself."""
    if ALWAYS_BACK.search(fold(text)):
        return True
    words = _low_words(text)
    is_upper = {word.lower() for word in _words(text) if word.isupper() and len(word) > 1}
    return any(_is_back(words, place) for place, word in enumerate(words) if word not in is_upper)


def _is_back(words: Sequence[str], place: int) -> bool:
    word, before = words[place], words[:place]
    if word in DA_WORDS:
        return True
    if word in OWNERS:
        return not _names(before)
    if word in POINTERS:
        return _is_pointing(words, place) and not _has_referent(before)
    return word in PRONOUNS and not _has_referent(before) and not _stands_for_more(words, place)


def _has_referent(before: Sequence[str]) -> bool:
    """Whether a clause before this one names something, or the pronoun goes along with a subject."""
    ends = [place for place, word in enumerate(before) if word in BOUNDARIES]
    if before and before[-1] == "with":
        return len(_names(before)) > 1
    return bool(ends) and bool(_names(before[: ends[-1]]))


def _stands_for_more(words: Sequence[str], place: int) -> bool:
    """An 'it' whose meaning follows: 'is it allowed to smoke indoors'."""
    full = FULL_IT.match(" ".join(words[place + 1 :])) if words[place] == "it" else None
    what = _names(full["what"].split()) if full else []
    return any(not set(analyze(word)) <= ASPECTS for word in what)


def _is_pointing(words: Sequence[str], place: int) -> bool:
    """Whether 'that' or 'this' points at something, and is no mere joint of a sentence."""
    following = words[place + 1] if place + 1 < len(words) else ""
    if following in THIS_TIME and words[place] in ("this", "these"):
        return False
    if words[place] != "that" or not following or place == 0:
        return True
    previous = words[place - 1]
    is_last = len(words) - place <= 2
    return is_last or (previous not in JOINTS and set(analyze(previous)) <= FUNCTION_TERMS)


def _names(words: Sequence[str]) -> list[str]:
    return [word for word in words if not set(analyze(word)) <= FUNCTION_TERMS]


def _words(text: str) -> list[str]:
    return _WORD.findall(_CLIPPED.sub(" ", text))


def _low_words(text: str) -> list[str]:
    return [fold(word).lower() for word in _words(text)]


def _rest(text: str, start: int) -> str:
    """What is left of a text behind its opener, which no letter stands in that folds into two."""
    return text[start:].strip() or text
