"""Recognises what needs no search, and answers it from SQL: small talk, help, the documents, the bot itself.

The whole message must be one of the known phrases, in any language of replies, so that no question to the
documents is taken for one. It is compared without accents, capitals, punctuation and emoji. No reply has
sources, passages or buttons, and no thread remembers one; but what a document is about is quoted from it.
"""

from __future__ import annotations

import logging
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from bot.core.commands.document_list import DocumentList
from bot.core.commands.document_outline import DocumentOutlines
from bot.core.models import Answer, AnswerState, Language, Question
from bot.core.plaintext import shorten
from bot.core.understanding.channel_documents import ChannelView, documents_meant, documents_named
from bot.core.understanding.question_terms import language_of
from bot.core.wording import ReplyWords, reply_words
from storage.chat.notifications import Notices
from storage.errors import InfrastructureError
from storage.models import DocumentStatus
from storage.text.analyzer import fold

MAX_CHARS = 200
"""Longer messages are no commands."""
MAX_PHRASES = 4
"""Phrases in a row: repetitions are bounded, because what may be parsed in two ways each doubles the time."""
MAX_NAME_CHARS = 100

_WORD = re.compile(r"[^\s'\u2018\u2019\u02bc]+")
_EMOJI_CODE = re.compile(r":(?:[a-z][\w+-]*|[+-]1):")
_SMILEY = re.compile(r"[:;]-?\)")
_CODE = re.compile(r"\S+\.pdf|[A-Z]{2,}\w*\d\w*|[A-Z]+(?:[-_][A-Z\d]+)*[-_]\d\S*", re.IGNORECASE)
_MACRO = re.compile("<(docs|here|when|more|models|name)>")


class ChatIntent(StrEnum):
    """What a message wants that is no question to the documents."""

    GREETING = "greeting"
    THANKS = "thanks"
    GOODBYE = "goodbye"
    ACKNOWLEDGEMENT = "acknowledgement"
    HELP = "help"
    ABOUT_THE_BOT = "about"
    INCOMPLETE = "incomplete"
    """It names nothing to look for: "why?", "tell me more"."""
    NEWS = "news"
    DOCUMENT_LIST = "documents"
    DOCUMENT_PRESENCE = "presence"
    """Whether a document of some name is there."""
    DOCUMENT_OUTLINE = "outline"
    """What a document is about: one of some name, or the one at hand."""


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """A message that was recognised."""

    intent: ChatIntent
    language: Language
    """The one it is said in."""
    name: str = ""
    """What the document in question is called, as it was typed."""
    is_certain: bool = True
    """False: it may as well be a question to the documents, if none has that name."""


_PHRASES = (ChatIntent.GOODBYE, ChatIntent.THANKS, ChatIntent.GREETING, ChatIntent.ACKNOWLEDGEMENT)
"""What is said in any number ("ok, thanks, bye"); the first of them that occurs is answered."""
_REQUESTS = (
    ChatIntent.HELP,
    ChatIntent.ABOUT_THE_BOT,
    ChatIntent.INCOMPLETE,
    ChatIntent.NEWS,
    ChatIntent.DOCUMENT_LIST,
)
_MODELS = r"(?:chat ?gpt|gpt(?: ?\d\w*)?|open ?ai|claude|gemini|copilot|llama|mistral|llms?)"


def recognize(text: str, language: Language) -> ChatCommand | None:
    """What a message wants, read in ``language`` first; None for what may be a question to the documents."""
    if len(text) > MAX_CHARS:
        return None
    message = _Message.of(text)
    if not message.words:
        return ChatCommand(_wordless(text), language)
    likeliest_first = sorted(Language, key=lambda one: one is not language)
    for recognizer in (_phrase, _request, _presence, _outline):
        for one in likeliest_first:
            if command := recognizer(message, one):
                return command
    return None


@dataclass(frozen=True, slots=True)
class _Message:
    """A message as it is compared, and where its words stand in what was typed."""

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, text: str) -> _Message:
        visible = _EMOJI_CODE.sub(lambda code: " " * len(code[0]), text)
        placed = [
            (part, match.span())
            for match in _WORD.finditer(visible)
            for part in re.sub(r"[\W_]+", " ", fold(match[0])).casefold().split()
        ]
        return cls(text, tuple(word for word, _ in placed), tuple(span for _, span in placed))

    @property
    def bare(self) -> str:
        """Its words with a blank between two of them."""
        return " ".join(self.words)

    def typed(self, start: int, end: int) -> str:
        """What was typed where ``bare[start:end]``, which holds whole words, comes from."""
        first = self.bare[:start].count(" ")
        last = first + len(self.bare[start:end].split()) - 1
        return self.text[self.spans[first][0] : self.spans[last][1]].strip(" \t\n\"'“”„«»‹›?!.,;:")


def _wordless(text: str) -> ChatIntent:
    """What emoji say; a message of nothing at all, or of a question mark, wants help."""
    if "🙏" in text or ":pray:" in text:
        return ChatIntent.THANKS
    if "👋" in text or ":wave:" in text:
        return ChatIntent.GREETING
    is_emoji = any(unicodedata.category(character) == "So" for character in text)
    is_said = is_emoji or _EMOJI_CODE.search(text) or _SMILEY.search(text)
    return ChatIntent.ACKNOWLEDGEMENT if is_said else ChatIntent.HELP


def _phrase(message: _Message, language: Language) -> ChatCommand | None:
    match = _phrases(language).phrases.fullmatch(message.bare)
    said = [intent for intent in _PHRASES if match and match[intent.value] is not None]
    return ChatCommand(said[0], language) if said else None


def _request(message: _Message, language: Language) -> ChatCommand | None:
    match = _phrases(language).requests.fullmatch(message.bare)
    said = [intent for intent in _REQUESTS if match and match[intent.value] is not None]
    return ChatCommand(said[0], language) if said else None


def _presence(message: _Message, language: Language) -> ChatCommand | None:
    """A name counts when it is said to be a document's, or a document is asked for in the channel itself."""
    phrases = _phrases(language)
    for pattern in phrases.presence:
        match = pattern.fullmatch(message.bare)
        if match is None:
            continue
        start, end, is_document = phrases.trim(*match.span("name"), message.bare)
        if start >= end:
            continue
        name = message.typed(start, end)
        place = match.groupdict().get("here") or ""
        is_document = is_document or _CODE.fullmatch(name) is not None
        is_named = is_document or any(map(phrases.kind.fullmatch, message.bare[start:end].split()))
        is_topic = any(map(phrases.is_topic_word, name.split()))
        if len(name) <= MAX_NAME_CHARS and (
            is_named if place and is_topic else (place or is_named) and not is_topic
        ):
            # "here" may be where people are; "in here" and "among your documents" are the channel.
            is_certain = not is_topic and (is_document or len(place.split()) > 1)
            return ChatCommand(ChatIntent.DOCUMENT_PRESENCE, language, name, is_certain)
    return None


def _outline(message: _Message, language: Language) -> ChatCommand | None:
    """Certain where the name is said to be a document's, or none is given."""
    phrases = _phrases(language)
    for pattern in phrases.outline:
        if (match := pattern.fullmatch(message.bare)) is None:
            continue
        is_named = "name" in match.groupdict()
        start, end, is_document = (
            phrases.trim(*match.span("name"), message.bare) if is_named else (0, 0, True)
        )
        name = message.typed(start, end) if start < end else ""
        if len(name) <= MAX_NAME_CHARS:
            is_kind = any(map(phrases.kind.fullmatch, message.bare[start:end].split()))
            is_certain = not name or is_document or is_kind or _CODE.fullmatch(name) is not None
            return ChatCommand(ChatIntent.DOCUMENT_OUTLINE, language, name, is_certain)
    return None


@dataclass(frozen=True, slots=True)
class _Phrases:
    """The patterns of one language."""

    phrases: re.Pattern[str]
    requests: re.Pattern[str]
    presence: tuple[re.Pattern[str], ...]
    outline: tuple[re.Pattern[str], ...]
    before_name: re.Pattern[str]
    behind_name: re.Pattern[str]
    kind: re.Pattern[str]
    topic_words: frozenset[str]

    def trim(self, start: int, end: int, bare: str) -> tuple[int, int, bool]:
        """A name without "the document called" before and "document" behind it; whether that was said."""
        before = self.before_name.match(bare, start, end)
        start = before.end() if before else start
        behind = self.behind_name.search(bare[start:end])
        is_document = bool(behind or (before and before["document"]))
        return start, start + behind.start() if behind else end, is_document

    def is_topic_word(self, word: str) -> bool:
        """Whether a word says that documents are asked, and not for them; "IT" is no "it"."""
        return fold(word).casefold() in self.topic_words and not word.isupper()


@cache
def _phrases(language: Language) -> _Phrases:
    file = files("bot.core").joinpath("phrases", f"{language}.toml")
    said = tomllib.loads(file.read_text(encoding="utf-8"))
    lead = "|".join((said["leads"], *said["greeting"], "ok(?:ay)?"))

    def polite(pattern: str) -> re.Pattern[str]:
        return re.compile(f"(?:(?:{lead}) ){{0,3}}(?:{pattern})(?: (?:{said['tails']})){{0,2}}")

    def any_of(intents: Iterable[ChatIntent]) -> str:
        patterns = {intent: "|".join(_expand(one, said) for one in said[intent]) for intent in intents}
        return "|".join(f"(?P<{intent}>{pattern})" for intent, pattern in patterns.items())

    articles = f"(?:(?:{said['article']}) )*"
    called = f"(?:(?P<document>{said['document']}) (?:(?:{said['named']}) )?{articles})?"
    return _Phrases(
        phrases=re.compile(f"(?:(?:{any_of(_PHRASES)}|bot|footnote)(?: |$)){{1,{MAX_PHRASES}}}"),
        requests=polite(any_of(_REQUESTS)),
        presence=tuple(polite(_expand(one, said)) for one in said[ChatIntent.DOCUMENT_PRESENCE]),
        outline=tuple(polite(_expand(one, said)) for one in said[ChatIntent.DOCUMENT_OUTLINE]),
        before_name=re.compile(f"{articles}{called}"),
        behind_name=re.compile(f"(?:^| )(?:{said['document']})$"),
        kind=re.compile(said["kinds"]),
        topic_words=frozenset(said["topic_words"].split()),
    )


def _expand(pattern: str, said: Mapping[str, Any]) -> str:
    """A pattern with what its <...> stand for; of one with a name, the place is a group of its own."""
    parts = {name: f"(?:{said[name]})" for name in ("docs", "here", "when")}
    parts["more"] = f"(?:{said['here']}|{said['when']}|{said['known']})"
    parts["models"], parts["name"] = _MODELS, "(?P<name>.+?)"
    if "<name>" in pattern:
        parts["here"] = f"(?P<here>{said['here']})"
    return _MACRO.sub(lambda macro: parts[macro[1]], pattern)


MAX_EXAMPLES = 3
MAX_VERSIONS = 50
"""Versions whose tried questions are looked through for examples."""
NAME_CHARS = 80

log = logging.getLogger(__name__)


class ChatCommands:
    """Replies to the messages of all channels that ask nothing of the documents' text."""

    def __init__(
        self,
        notices: Notices | None = None,
        *,
        has_model: bool = False,
        kept_days: int | None = None,
    ) -> None:
        """Reply with what the installation is.

        Args:
            notices: holds the questions that documents were tried with; None: help has no examples.
            has_model: a language model words the answers.
            kept_days: days after which no question or answer is kept; None: nothing is said of it.
        """
        self._notices = notices
        self._has_model = has_model
        self._kept_days = kept_days

    async def reply(self, question: Question, view: ChannelView, outlines: DocumentOutlines) -> Answer | None:
        """The reply, in the language of the message; None for what is to be searched for.

        ``outlines`` write what a document is about.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached, and the reply needs it.
        """
        command = recognize(question.text, question.language)
        if command is None:
            return None
        if command.intent is ChatIntent.DOCUMENT_OUTLINE:
            return await self._outline(command, question, await view.documents(), outlines)
        text = await self._write(command, question, view)
        return Answer(AnswerState.CHAT, text, language=command.language) if text else None

    async def _write(self, command: ChatCommand, question: Question, view: ChannelView) -> str | None:
        words = reply_words(command.language)
        fixed = {
            ChatIntent.GREETING: words.greeting,
            ChatIntent.THANKS: words.thanks,
            ChatIntent.GOODBYE: words.goodbye,
            ChatIntent.ACKNOWLEDGEMENT: words.acknowledged,
            ChatIntent.ABOUT_THE_BOT: self._about(words),
            ChatIntent.INCOMPLETE: words.incomplete,
        }
        if command.intent in fixed:
            return fixed[command.intent]
        if command.intent is not ChatIntent.HELP:
            documents = await view.documents()
            if not documents and question.documents is None:
                return words.no_documents(question.channel, await view.folder())
            return _of_documents(command, question, documents)
        examples = [f"• {text}" for text in await self._examples(question, command.language)]
        return "\n".join([words.help, *([words.try_asking] if examples else []), *examples])

    async def _outline(
        self,
        command: ChatCommand,
        question: Question,
        documents: Sequence[DocumentStatus],
        outlines: DocumentOutlines,
    ) -> Answer | None:
        """What one document is about, or the question which one is meant; None: it is to be searched for.

        Where none is named, it is the one that the last answer cited, or the only one there is.
        """
        words, scope = reply_words(command.language), question.documents
        live = [one for one in documents if one.state == "live" and (scope is None or one.document in scope)]
        cited = question.history[-1].documents if question.history else ()
        at_hand = [one for one in live if one.document in cited] if len(cited) == 1 else live
        meant = documents_meant(command.name, live) if command.name else at_hand
        if len(meant) == 1:
            name = DocumentList(words, documents).name_of(meant[0])
            return await outlines.write(question.channel, meant[0].document, name, words)
        if not (meant and command.is_certain):
            return None
        return Answer(AnswerState.CHAT, DocumentList(words, meant).write_choice(), language=command.language)

    def _about(self, words: ReplyWords) -> str:
        said = [words.about, words.about_model if self._has_model else words.about_quotes]
        kept = [] if self._kept_days is None else [words.kept_for(self._kept_days)]
        return " ".join([*said, words.about_channel, *kept])

    async def _examples(self, question: Question, language: Language) -> Sequence[str]:
        """Questions that documents of this channel were seen to answer, first those in the asker's language.

        Help is not refused for want of examples.
        """
        if self._notices is None or question.documents is not None:
            return ()
        try:
            tried = await self._notices.tried_questions(question.channel.id, MAX_VERSIONS)
        except InfrastructureError as error:
            log.warning("question %s gets no examples: %s", question.id, type(error).__name__)
            return ()
        distinct = dict.fromkeys(" ".join(text.split()) for _, text in tried)
        return sorted(distinct, key=lambda text: language_of(text) is not language)[:MAX_EXAMPLES]


def _of_documents(
    command: ChatCommand, question: Question, documents: Sequence[DocumentStatus]
) -> str | None:
    """What is said of the documents that may answer; None where a name is none and may be a question."""
    words, scope = reply_words(command.language), question.documents
    if scope is not None:
        documents = [one for one in documents if one.document in scope]
    if not documents:
        return words.no_such_document
    if command.intent is ChatIntent.DOCUMENT_LIST:
        return DocumentList(words, documents).write()
    if command.intent is ChatIntent.NEWS:
        return DocumentList(words, documents).write_news(question.asked_at)
    if found := documents_named(command.name, documents):
        return DocumentList(words, found).write_found()
    name = shorten(command.name, NAME_CHARS)
    return words.no_document_named(name=name) if command.is_certain else None
