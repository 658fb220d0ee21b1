"""Makes up questions that a document might answer, from its own headings and sentences, without a model.

They are candidates only: ``trying.py`` offers those that came back with an answer from the document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, zip_longest

from bot.core import wording
from bot.core.languages import Language, language_of
from bot.core.reply_words import reply_words
from bot.core.sentence_questions import question_of
from storage.models import Chunk
from storage.units import split_units

MAX_QUESTION_CHARS = 140
"""Characters of a question."""
MAX_TITLE_CHARS = 60
MIN_SENTENCES = 6
"""Characters of a heading."""

_NUMBERING = re.compile(
    r"^(?:(?:section|chapter|step|part|appendix)\s+)?(?:[\dIVX]+(?:\.\d+)*|[A-Z])[.):]?\s+", re.I
)
_EMPTY_HEADINGS = re.compile(
    r"(?:table of )?contents?|introduction|overview|appendix.*|references?|index|notes?|summary|abstract"
    r"|purpose|scope(?: and application)?|acknowledg\w+|background|general|definitions?"
    r"|records?|revision history|responsibilities|objectives?"
    r"|inhalt(?:sverzeichnis)?|einleitung|sommaire|índice|introducción|indice|introduzione|introdução"
    r"|inhoud(?:sopgave)?|inleiding",
    re.I,
)
_PLAIN_TOPIC = re.compile(r"[^\W_][\w\s'’,&/()+-]{3,138}")
_ASKING = re.compile(r"(?:who|what|when|where|why|which)\s", re.I)
_HANGING = re.compile(
    r"(?:while|when|if|before|after|for|in|on|at|with|and|or|other|warning|caution)\b", re.I
)


def suggest_questions(chunks: Sequence[Chunk], title: str, most: int) -> list[str]:
    """At most ``most`` questions: the document's own, then of its sentences and headings by turns."""
    text = "\n\n".join(chunk.text for chunk in chunks)
    language = language_of(text)
    headings = list(dict.fromkeys(heading for chunk in chunks for heading in chunk.heading_path[-1:]))
    asked = [heading for heading in headings if _is_question(heading)]
    soften = _Decapitalizer(text)
    about = list(_about_headings(headings, title, language, soften)) if language else []
    from_sentences = list(_about_sentences(text, soften)) if language is Language.ENGLISH else []
    turns = chain.from_iterable(zip_longest(_spread(from_sentences, most), _spread(about, most)))
    distinct = dict.fromkeys(question for question in chain(asked, turns) if question)
    return [question for question in distinct if len(question) <= MAX_QUESTION_CHARS][:most]


def _spread(questions: Sequence[str], most: int) -> Sequence[str]:
    """Some of them, from the whole of the document."""
    return questions[:: max(1, len(questions) // most)]


def _is_question(heading: str) -> bool:
    """A heading that asks, as in a list of frequent questions."""
    words = heading.rstrip("? ")
    return heading.endswith("?") and len(words.split()) >= 3 and _is_plain(words)


def _about_headings(
    headings: Sequence[str], title: str, language: Language, soften: Callable[[str], str]
) -> Iterator[str]:
    for heading in headings:
        topic = _NUMBERING.sub("", " ".join(heading.split())).strip(" :.")
        if heading.endswith("?") or not _is_topic(topic) or topic == title:
            continue
        words = " ".join(map(soften, topic.split()))
        if language is Language.ENGLISH and _ASKING.match(topic):
            yield f"{topic[0].upper()}{words[1:]}?"
        elif language is Language.ENGLISH and topic.lower().startswith("how to "):
            yield wording.HOW_DO_I.format(words[len("how to ") :])
        else:
            is_plain = _is_plain(title) and len(title) <= MAX_TITLE_CHARS
            is_sentence = language is Language.ENGLISH and topic[1:] == topic[1:].lower()
            subject = words if is_sentence else topic
            yield reply_words(language).question_on(subject, title if is_plain else "")


def _is_topic(topic: str) -> bool:
    """A heading that names something, without a code or a number of its own."""
    is_short = len(topic) >= MIN_SENTENCES and len(topic.split()) <= 8
    is_bare = _EMPTY_HEADINGS.fullmatch(topic) or _HANGING.match(topic) or re.search(r"\d", topic)
    return is_short and _is_plain(topic) and not is_bare


def _about_sentences(text: str, soften: Callable[[str], str]) -> Iterator[str]:
    for unit in split_units(text):
        sentence = " ".join(text[unit.start : unit.end].split())
        question = None if unit.is_row else question_of(sentence, soften)
        if question and _is_plain(question.rstrip("?")):
            yield question


def _is_plain(text: str) -> bool:
    """Words alone: nothing that a chat takes for a link, a mention or markup."""
    return _PLAIN_TOPIC.fullmatch(text) is not None


class _Decapitalizer:
    """Takes the capital off words that a heading or a sentence gave it, not off names."""

    def __init__(self, text: str) -> None:
        self._small = set(re.findall(r"\b[^\W\d_A-Z]+\b", text))
        self._names = set(re.findall(r"(?<=[a-z,] )[A-Z][\w'’-]*", text))

    def __call__(self, word: str) -> str:
        """The word as it is written in the middle of a sentence."""
        is_known = word.lower() in self._small
        is_capital_alone = word[1:].islower() and word not in self._names
        return word.lower() if is_known or is_capital_alone else word
