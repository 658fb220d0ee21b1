"""Finds questions worth trying on a new document: made of its headings, asked, and only then offered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from bot.core.models import AnswerState, Language, Question
from bot.core.notifications import notification_wording
from bot.core.ports import QuestionAnswering
from bot.core.understanding.question_terms import language_of
from bot.core.wording import reply_words
from storage.chat_models import Notice
from storage.clock import utc_now
from storage.models import Channel, Chunk
from storage.queues.reading_repair import RepairingReadings

MAX_QUESTION_CHARS = 140
"""Characters of a question."""
MAX_TITLE_CHARS = 60
MIN_TOPIC_CHARS = 6
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

MAX_OFFERED = 3
MAX_TRIED = 6
"""Questions asked for one document at most: each costs what a person's question costs."""
MAX_CHUNKS_READ = 12
"""Chunks read, evenly spread: the beginning of a long document is often a table of contents."""


def suggest_questions(chunks: Sequence[Chunk], title: str, most: int) -> list[str]:
    """At most ``most`` questions: the document's own, then about headings of the whole document."""
    text = "\n\n".join(chunk.text for chunk in chunks)
    language = language_of(text)
    headings = list(dict.fromkeys(heading for chunk in chunks for heading in chunk.heading_path[-1:]))
    asked = [heading for heading in headings if _is_question(heading)]
    about = list(_about_headings(headings, title, language, _Decapitalizer(text))) if language else []
    spread = about[:: max(1, len(about) // most)]
    distinct = dict.fromkeys([*asked, *spread])
    return [question for question in distinct if len(question) <= MAX_QUESTION_CHARS][:most]


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
            yield notification_wording.HOW_DO_I.format(words[len("how to ") :])
        else:
            is_plain = _is_plain(title) and len(title) <= MAX_TITLE_CHARS
            is_sentence = language is Language.ENGLISH and topic[1:] == topic[1:].lower()
            subject = words if is_sentence else topic
            yield reply_words(language).question_on(subject, title if is_plain else "")


def _is_topic(topic: str) -> bool:
    """A heading that names something, without a code or a number of its own."""
    is_short = len(topic) >= MIN_TOPIC_CHARS and len(topic.split()) <= 8
    is_bare = _EMPTY_HEADINGS.fullmatch(topic) or _HANGING.match(topic) or re.search(r"\d", topic)
    return is_short and _is_plain(topic) and not is_bare


def _is_plain(text: str) -> bool:
    """Words alone: nothing that a chat takes for a link, a mention or markup."""
    return _PLAIN_TOPIC.fullmatch(text) is not None


class _Decapitalizer:
    """Takes the capital off words that a heading gave it, not off names."""

    def __init__(self, text: str) -> None:
        self._small = set(re.findall(r"\b[^\W\d_A-Z]+\b", text))
        self._names = set(re.findall(r"(?<=[a-z,] )[A-Z][\w'’-]*", text))

    def __call__(self, word: str) -> str:
        """The word as it is written in the middle of a sentence."""
        is_known = word.lower() in self._small
        is_capital_alone = word[1:].islower() and word not in self._names
        return word.lower() if is_known or is_capital_alone else word


class SuggestedQuestions:
    """Asks candidates in the document's own channel, as a person would."""

    def __init__(self, answering: QuestionAnswering, chunks: RepairingReadings) -> None:
        self._answering = answering
        self._chunks = chunks

    async def questions(self, channel: Channel, notice: Notice) -> tuple[str, ...]:
        """At most three questions that this version answered a moment ago; fewer when fewer did.

        Raises:
            storage.errors.InfrastructureError: the reading cannot be reached.
        """
        passed: list[str] = []
        for text in suggest_questions(await self._sample(notice), notice.title, MAX_TRIED):
            if len(passed) < MAX_OFFERED and await self._is_answered(channel, notice, text):
                passed.append(text)
        return tuple(passed)

    async def _sample(self, notice: Notice) -> Sequence[Chunk]:
        if notice.reading_id is None:
            return []
        step = max(1, notice.chunks // MAX_CHUNKS_READ)
        ordinals = range(0, notice.chunks, step)[:MAX_CHUNKS_READ]
        return await self._chunks.chunks_at([(notice.reading_id, ordinal) for ordinal in ordinals])

    async def _is_answered(self, channel: Channel, notice: Notice, text: str) -> bool:
        question = Question(f"notice-{notice.id}", text, channel, utc_now(), is_trial=True)
        answer = await self._answering.answer(question)
        is_grounded = answer.state in {AnswerState.GROUNDED, AnswerState.PASSAGES}
        return is_grounded and answer.citations[0].version_id == notice.version_id
