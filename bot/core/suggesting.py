"""Makes up questions that a document might answer, from its own headings and sentences, without a model.

They are candidates only: ``trying.py`` offers those that came back with an answer from the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from bot.core import wording
from bot.core.sentences import split_units
from storage.models import Chunk

LONGEST = 110
"""Characters of a question."""

_COMMON_WORDS = {
    "en": "the and of to in is for with",
    "de": "der die und das ist von mit nicht",
    "fr": "le les des et est une dans pour",
    "es": "el los las y es una por para",
}
_NUMBERING = re.compile(
    r"^(?:(?:section|chapter|step|part|appendix)\s+)?(?:[\dIVX]+(?:\.\d+)*|[A-Z])[.):]?\s+", re.I
)
_EMPTY_HEADINGS = re.compile(
    r"(?:table of )?contents?|introduction|overview|appendix.*|references?|index|notes?|summary|abstract"
    r"|inhalt(?:sverzeichnis)?|einleitung|sommaire|índice|introducción",
    re.I,
)
_PLAIN_TOPIC = re.compile(r"[^\W_][\w\s'’,&/()+-]{3,69}")
_DEFINITION = re.compile(
    r"((?:the|an?|our|all|each|every)\s+[\w\s'’/-]{3,60}?)\s+(is|are)\s+(?!not\b)\w", re.I
)
_RULE = re.compile(
    r"([A-Z][\w'’-]+(?:\s+[\w'’-]+){0,3}?)\s+(must|may|can|should)\s+(?!not\b)([^.:;!?]{8,80})\.?$"
)
_POINTS_ELSEWHERE = re.compile(
    r"\b(?:it|this|that|these|those|they|there|we|you|he|she|which|who|following|above|below|page)\b", re.I
)


def suggest_questions(chunks: Sequence[Chunk], most: int) -> list[str]:
    """At most ``most`` questions: the document's own, then of its sentences and headings by turns."""
    text = "\n\n".join(chunk.text for chunk in chunks)
    language = language_of(text)
    headings = list(dict.fromkeys(heading for chunk in chunks for heading in chunk.heading_path[-1:]))
    asked = [heading for heading in headings if _is_question(heading)]
    seen_lower = set(re.findall(r"\b[^\W\d_]+\b", text)) if language else set()
    about = _about_headings(headings, language, seen_lower) if language else iter(())
    told = _about_sentences(text, seen_lower) if language == "en" else iter(())
    turns = chain.from_iterable(zip_longest(told, about))
    distinct = dict.fromkeys(question for question in chain(asked, turns) if question)
    return [question for question in distinct if len(question) <= LONGEST][:most]


def language_of(text: str) -> str | None:
    """The language most of whose common words a text holds, of those we can ask in; None for others."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    shares = {
        language: sum(map(set(common.split()).__contains__, words))
        for language, common in _COMMON_WORDS.items()
    }
    best = max(shares, key=lambda language: shares[language])
    return best if shares[best] >= max(2, len(words) / 25) else None


def _is_question(heading: str) -> bool:
    """A heading that asks, as in a list of frequent questions."""
    words = heading.rstrip("? ")
    return heading.endswith("?") and len(words.split()) >= 3 and _is_plain(words)


def _about_headings(headings: Sequence[str], language: str, seen_lower: set[str]) -> Iterator[str]:
    for heading in headings:
        topic = _NUMBERING.sub("", " ".join(heading.split())).strip(" :.")
        is_named = 1 <= len(topic.split()) <= 8 and _is_plain(topic) and not heading.endswith("?")
        if is_named and not _EMPTY_HEADINGS.fullmatch(topic):
            yield wording.QUESTIONS_ABOUT[language].format(_in_mid_sentence(topic, seen_lower))


def _about_sentences(text: str, seen_lower: set[str]) -> Iterator[str]:
    """English only: "The X is ..." asks "What is the X?", and "All Y must ..." asks "Must all Y ...?"."""
    for unit in split_units(text):
        sentence = " ".join(text[unit.start : unit.end].split())
        if defined := _DEFINITION.match(sentence):
            subject, verb = defined[1], defined[2].lower()
            if _is_plain(subject) and len(subject.split()) <= 7:
                yield f"What {verb} {_in_mid_sentence(subject, seen_lower)}?"
        elif (rule := _RULE.match(sentence)) and _is_plain(rule[1]) and _is_plain(rule[3]):
            yield f"{rule[2].capitalize()} {_in_mid_sentence(rule[1], seen_lower)} {rule[3]}?"


def _is_plain(topic: str) -> bool:
    """Words alone: nothing that a chat takes for a link, a mention or markup, or that points elsewhere."""
    return _PLAIN_TOPIC.fullmatch(topic) is not None and not _POINTS_ELSEWHERE.search(topic)


def _in_mid_sentence(topic: str, seen_lower: set[str]) -> str:
    """Without the capitals of a heading: a word that the text also writes small is no name."""
    words = (word.lower() if word.lower() in seen_lower else word for word in topic.split())
    return " ".join(words)
