"""Makes up questions that a document might answer, from its own headings and sentences, without a model.

They are candidates only: ``trying.py`` offers those that came back with an answer from the document.

Turns plain English sentences into the questions that they answer, by a few safe patterns and no model.

"A lost device is reported to the service desk within one hour" answers "When is a lost device reported
to the service desk?". What fits no pattern, or points outside itself, asks nothing.

Finds questions worth trying on a new document: made up from its text, asked, and only then offered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, zip_longest

from bot.core.models import AnswerState, Language, Question
from bot.core.notifications import notification_wording
from bot.core.ports import QuestionAnswering, ReceiptChunks
from bot.core.understanding.language import language_of
from bot.core.wording import reply_words
from storage.chat_models import Notice
from storage.clock import utc_now
from storage.models import Channel, Chunk
from storage.text.sentences import split_units

_WORDS = r"[\w'’/-]+"
_SUBJECT = rf"(?P<subject>{_WORDS}(?:\s+{_WORDS}){{0,6}}?)"
_TIME = r"(?P<time>within|when|whenever|before|after|until|every|once|daily|weekly|monthly|on|at)\b"
_SPAN = r"for\s+(?:\d|at\s+least|up\s+to|one|two|three|four|five|six|seven|ten|twelve)"
_PARTICIPLE = (
    r"(?P<done>\w{3,}ed|kept|given|made|sent|held|paid|done|taken|written|chosen|set|run|shown|built|sold)"
)
_MIDDLE = rf"(?P<middle>(?:\s+{_WORDS}){{0,6}}?)"
_GOES = r"(?P<verb>run|start|begin|end|close|open|expire|last|arrive|leave)"
_ROLES = r"approve|review|sign|check|manage|maintain|handle|coordinate|confirm|own|supervise|authori[sz]e"


_PATTERNS = tuple(
    (re.compile(pattern), question)
    for pattern, question in (
        (rf"{_SUBJECT}\s+(?P<be>is|are)\s+{_PARTICIPLE}\s+(?:with|using)\s", "How {be} {subject} {done}?"),
        (
            rf"{_SUBJECT}\s+(?P<be>is|are)\s+{_PARTICIPLE}{_MIDDLE}\s+{_TIME}",
            "When {be} {subject} {done}{middle}?",
        ),
        (
            rf"{_SUBJECT}\s+(?P<be>is|are)\s+{_PARTICIPLE}{_MIDDLE}\s+{_SPAN}",
            "How long {be} {subject} {done}{middle}?",
        ),
        (
            rf"{_SUBJECT}\s+(?P<modal>must|should)\s+(?P<do>(?!not\b|be\b){_WORDS}){_MIDDLE}\s+{_TIME}",
            "When {modal} {subject} {do}{middle}?",
        ),
        (
            rf"{_SUBJECT}\s+(?P<modal>must|should)\s+be\s+(?P<do>{_WORDS}){_MIDDLE}\s+{_TIME}",
            "When {modal} {subject} be {do}{middle}?",
        ),
        (rf"{_SUBJECT}\s+{_GOES}\s+(?:(?:daily|weekly|monthly)\s+)?{_TIME}", "When do {subject} {verb}?"),
        (rf"{_SUBJECT}\s+{_GOES}s\s+(?:(?:daily|weekly|monthly)\s+)?{_TIME}", "When does {subject} {verb}?"),
        (rf"{_SUBJECT}\s+{_GOES}s\s+{_SPAN}", "How long does {subject} {verb}?"),
        (
            rf"{_SUBJECT}\s+(?P<verb>keep|retain|store)s\s+(?P<thing>{_WORDS}(?:\s+{_WORDS}){{0,5}}?)\s+{_SPAN}",
            "How long does {subject} {verb} {thing}?",
        ),
        (
            rf"The\s+{_SUBJECT}\s+(?P<verb>(?:{_ROLES})s)\s+(?P<thing>{_WORDS}(?:\s+{_WORDS}){{0,7}})[.;]?$",
            "Who {verb} {thing}?",
        ),
        (
            rf"{_SUBJECT}\s+(?P<modal>may|can)\s+(?P<do>(?!not\b|be\b){_WORDS}(?:\s+{_WORDS}){{2,9}})[.;]?$",
            "{modal} {subject} {do}?",
        ),
        (
            r"(?P<subject>(?:The|Our)\s+[\w'’/-]+(?:\s+[\w'’/-]+){1,5}?)\s+(?P<be>is|are)\s+"
            r"(?:\d+|USD|EUR|up\s+to|at\s+(?:least|most)|between|the|an?)\b",
            "What {be} {subject}?",
        ),
    )
)

_POINTS_ELSEWHERE = re.compile(
    r"\b(?:it|its|this|that|these|those|they|their|there|we|us|you|your|he|she|his|her|which|who|then|also|if"
    r"|following|above|below|page|table|figure|only|no|not|none)\b",
    re.IGNORECASE,
)
_OPENERS = {"the", "a", "an", "all", "each", "every", "our", "any", "some", "new", "both", "most"}


def question_of(sentence: str, soften: Callable[[str], str]) -> str | None:
    """The question that an English sentence answers, or None.

    Args:
        sentence: one sentence on one line.
        soften: takes the capital off a word that only begins a sentence.
    """
    for pattern, question in _PATTERNS:
        if found := pattern.match(sentence):
            parts = {name: text or "" for name, text in found.groupdict().items()}
            asked = question.format(**parts | {"subject": _soften(parts["subject"], soften)})
            is_clear = asked.count(" ") >= 3 and not _POINTS_ELSEWHERE.search(" ".join(parts.values()))
            return asked[0].upper() + asked[1:] if is_clear else None
    return None


def _soften(subject: str, soften: Callable[[str], str]) -> str:
    first, space, rest = subject.partition(" ")
    return (first.lower() if first.lower() in _OPENERS else soften(first)) + space + rest


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
            yield notification_wording.HOW_DO_I.format(words[len("how to ") :])
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


MAX_OFFERED = 3
MAX_TRIED = 6
"""Questions asked for one document at most: each costs what a person's question costs."""
MAX_CHUNKS_READ = 12
"""Chunks looked at, evenly spread: the beginning of a long document is often a table of contents."""


class SuggestedQuestions:
    """Asks candidates in the document's own channel, as a person would."""

    def __init__(self, answering: QuestionAnswering, chunks: ReceiptChunks) -> None:
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
        is_grounded = answer.state is AnswerState.GROUNDED
        return is_grounded and answer.citations[0].version_id == notice.version_id
