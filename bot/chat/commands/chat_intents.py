"""Recognises messages that need no search: small talk, and requests to the bot itself.

The whole message must be a known phrase, so that no question to the documents is mistaken for one. Small talk
and help are recognised in every language of replies, commands in English only: the others have buttons.
Accents, case, punctuation and emoji are ignored.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from bot.answers.understanding.document_filters import read_days
from bot.core.models import Language
from storage.readers.registry import READERS
from storage.text.analyzer import fold

# Longer messages are never commands.
MAX_CHARS = 200
# Phrases in a row. Bounded, because every repetition that can be parsed in two ways doubles the time.
MAX_PHRASES = 4
MAX_NAME_CHARS = 100

_WORD = re.compile(r"[^\s'\u2018\u2019\u02bc]+")
_EMOJI_CODE = re.compile(r":(?:[a-z][\w+-]*|[+-]1):")
_SMILEY = re.compile(r"[:;]-?\)")
_CODE = re.compile(r"[A-Z]{2,}\w*\d\w*|[A-Z]+(?:[-_][A-Z\d]+)*[-_]\d\S*", re.IGNORECASE)
_MACRO = re.compile("<(docs|here|when|more|models|name|number)>")


class ChatIntent(StrEnum):
    """The intent of a message that is not a question to the documents."""

    GREETING = "greeting"
    THANKS = "thanks"
    GOODBYE = "goodbye"
    ACKNOWLEDGEMENT = "acknowledgement"
    HELP = "help"
    ABOUT_THE_BOT = "about"
    # Explain the thread's last answer.
    WHY = "why"
    # Name a person to ask.
    HUMAN = "human"
    # Nothing to search for: "tell me more".
    INCOMPLETE = "incomplete"
    NEWS = "news"
    DOCUMENT_LIST = "documents"
    # Whether there is a document with a given name.
    DOCUMENT_PRESENCE = "presence"
    # What a document is about: one with a given name, or the current one.
    DOCUMENT_OUTLINE = "outline"
    UNREAD_DOCUMENTS = "unread"
    DOCUMENTS_BEING_READ = "being_read"
    # By document date, as are the next two.
    DOCUMENTS_SINCE = "since"
    DOCUMENTS_UNTIL = "until"
    DOCUMENTS_WITHIN = "within"
    # Show the sources of the thread's last answer again.
    SOURCES = "sources"
    # Erase the thread's memory.
    FORGET = "forget"
    # Follow a page that the thread's last answer cites: by its number, or the first.
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    # Remove a file that was uploaded in the chat.
    REMOVE_UPLOAD = "remove_upload"
    # Folder status. From here on, the intents are for admins.
    STATUS = "status"
    PAUSE = "pause"
    RESUME = "resume"
    # Re-read a file that could not be read.
    RETRY = "retry"
    # Approve the deletion of files that disappeared from a folder.
    APPROVE = "approve"
    # Erase a document everywhere; first, the reply says what would go and how to confirm.
    ERASE = "erase"
    ERASE_FOR_GOOD = "erase_for_good"


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """A recognised message."""

    intent: ChatIntent
    # Language of the message.
    language: Language
    # Document name, date or folder number, as typed.
    name: str = ""
    # False: it may also be a question to the documents, if none has that name.
    is_certain: bool = True


# May follow each other ("ok, thanks, bye"); the first intent in this list that occurs is answered.
_PHRASES = (ChatIntent.GOODBYE, ChatIntent.THANKS, ChatIntent.GREETING, ChatIntent.ACKNOWLEDGEMENT)
_REQUESTS = (
    ChatIntent.HELP,
    ChatIntent.ABOUT_THE_BOT,
    ChatIntent.WHY,
    ChatIntent.HUMAN,
    ChatIntent.INCOMPLETE,
    ChatIntent.NEWS,
    ChatIntent.DOCUMENT_LIST,
    ChatIntent.UNREAD_DOCUMENTS,
    ChatIntent.DOCUMENTS_BEING_READ,
    ChatIntent.SOURCES,
    ChatIntent.FORGET,
    ChatIntent.UNSUBSCRIBE,
    ChatIntent.STATUS,
    ChatIntent.PAUSE,
    ChatIntent.RESUME,
)
BY_DATE = (ChatIntent.DOCUMENTS_SINCE, ChatIntent.DOCUMENTS_UNTIL, ChatIntent.DOCUMENTS_WITHIN)
# Whether a file has that name is checked against the documents.
_OF_FILES = (ChatIntent.RETRY, ChatIntent.ERASE_FOR_GOOD, ChatIntent.ERASE)
# Commands with a date, a file or a folder.
_NAMING = (*BY_DATE, ChatIntent.SUBSCRIBE, ChatIntent.REMOVE_UPLOAD, *_OF_FILES, ChatIntent.APPROVE)
_MODELS = r"(?:chat ?gpt|gpt(?: ?\d\w*)?|open ?ai|claude|gemini|copilot|llama|mistral|llms?)"


def recognize(text: str, language: Language) -> ChatCommand | None:
    """Recognise a command, in ``language`` first; None if it may be a question to the documents."""
    if len(text) > MAX_CHARS:
        return None
    message = _Message.of(text)
    if not message.words:
        return ChatCommand(_wordless(text), language)
    likeliest_first = sorted(Language, key=lambda one: one is not language)
    for recognizer in (_phrase, _request):
        for one in likeliest_first:
            if command := recognizer(message, one):
                return command
    return _naming(message) or _presence(message) or _outline(message)


@dataclass(frozen=True, slots=True)
class _Message:
    """A normalised message, with the position of each word in the typed text."""

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
        """The words, joined by single spaces."""
        return " ".join(self.words)

    def typed(self, start: int, end: int) -> str:
        """Return the typed text of ``bare[start:end]``, which must be whole words."""
        first = self.bare[:start].count(" ")
        last = first + len(self.bare[start:end].split()) - 1
        return self.text[self.spans[first][0] : self.spans[last][1]].strip(" \t\n\"'“”„«»‹›?!.,;:")


def _wordless(text: str) -> ChatIntent:
    """Return the intent of emoji; an empty message, or one of punctuation alone, asks for help."""
    if "🙏" in text or ":pray:" in text:
        return ChatIntent.THANKS
    if "👋" in text or ":wave:" in text:
        return ChatIntent.GREETING
    is_emoji = any(unicodedata.category(character) == "So" for character in text)
    is_said = is_emoji or _EMOJI_CODE.search(text) or _SMILEY.search(text)
    return ChatIntent.ACKNOWLEDGEMENT if is_said else ChatIntent.HELP


def _phrase(message: _Message, language: Language) -> ChatCommand | None:
    match = _phrases(language).phrases.fullmatch(message.bare)
    groups = match.groupdict() if match else {}
    said = [intent for intent in _PHRASES if groups.get(intent) is not None]
    return ChatCommand(said[0], language) if said else None


def _request(message: _Message, language: Language) -> ChatCommand | None:
    match = _phrases(language).requests.fullmatch(message.bare)
    groups = match.groupdict() if match else {}
    said = [intent for intent in _REQUESTS if groups.get(intent) is not None]
    return ChatCommand(said[0], language) if said else None


def _naming(message: _Message) -> ChatCommand | None:
    """Match commands with a name: a date is parsed, a file is checked against the documents later."""
    for intent in _NAMING:
        for pattern in _commands().naming[intent]:
            if (match := pattern.fullmatch(message.bare)) is None:
                continue
            named = match.span("name") if "name" in match.re.groupindex else (0, 0)
            name = message.typed(*named) if named[0] < named[1] else ""
            if len(name) <= MAX_NAME_CHARS and (intent not in BY_DATE or read_days(name)):
                return ChatCommand(intent, Language.ENGLISH, name, is_certain=intent not in _OF_FILES)
    return None


def _presence(message: _Message) -> ChatCommand | None:
    """Match a question for a document by name.

    The name must be called a document, or the question must refer to the channel.
    """
    commands = _commands()
    for pattern in commands.presence:
        match = pattern.fullmatch(message.bare)
        if match is None:
            continue
        start, end, is_document = commands.trim(*match.span("name"), message.bare)
        if start >= end:
            continue
        name = message.typed(start, end)
        place = match.groupdict().get("here") or ""
        is_document = is_document or _is_document_id(name)
        is_named = is_document or any(map(commands.kind.fullmatch, message.bare[start:end].split()))
        is_topic = any(map(commands.is_topic_word, name.split()))
        if len(name) <= MAX_NAME_CHARS and (
            is_named if place and is_topic else (place or is_named) and not is_topic
        ):
            # "here" may be where people are; "in here" and "among your documents" are the channel.
            is_certain = not is_topic and (is_document or len(place.split()) > 1)
            return ChatCommand(ChatIntent.DOCUMENT_PRESENCE, Language.ENGLISH, name, is_certain)
    return None


def _outline(message: _Message) -> ChatCommand | None:
    """Match a request for an outline: certain if the name is called a document, or there is none."""
    commands = _commands()
    for pattern in commands.outline:
        if (match := pattern.fullmatch(message.bare)) is None:
            continue
        is_named = "name" in match.groupdict()
        start, end, is_document = (
            commands.trim(*match.span("name"), message.bare) if is_named else (0, 0, True)
        )
        name = message.typed(start, end) if start < end else ""
        if len(name) <= MAX_NAME_CHARS:
            is_kind = any(map(commands.kind.fullmatch, message.bare[start:end].split()))
            is_certain = not name or is_document or is_kind or _is_document_id(name)
            return ChatCommand(ChatIntent.DOCUMENT_OUTLINE, Language.ENGLISH, name, is_certain)
    return None


def _is_document_id(name: str) -> bool:
    """True for a code, and for one word that is the name of a file."""
    is_file = len(name.split()) == 1 and READERS.type_of(name) is not None
    return is_file or _CODE.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class _Phrases:
    """Patterns of one language: small talk, and requests that name nothing."""

    phrases: re.Pattern[str]
    requests: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class _Commands:
    """Patterns of commands with a name, a date or a number, in English."""

    presence: tuple[re.Pattern[str], ...]
    outline: tuple[re.Pattern[str], ...]
    naming: Mapping[ChatIntent, tuple[re.Pattern[str], ...]]
    before_name: re.Pattern[str]
    behind_name: re.Pattern[str]
    kind: re.Pattern[str]
    topic_words: frozenset[str]

    def trim(self, start: int, end: int, bare: str) -> tuple[int, int, bool]:
        """Strip "the document called" before a name and "document" after it; last, True if found."""
        before = self.before_name.match(bare, start, end)
        start = before.end() if before else start
        behind = self.behind_name.search(bare[start:end])
        is_document = bool(behind or (before and before["document"]))
        return start, start + behind.start() if behind else end, is_document

    def is_topic_word(self, word: str) -> bool:
        """True if a word marks a question about content, not for a document ("IT" is not "it")."""
        return fold(word).casefold() in self.topic_words and not word.isupper()


def load_phrases() -> None:
    """Compile the patterns of all languages ahead of the first message."""
    for language in Language:
        _phrases(language)
    _commands()


@cache
def _phrases(language: Language) -> _Phrases:
    said = _patterns(language)

    def any_of(intents: Iterable[ChatIntent]) -> str:
        patterns = {
            intent: "|".join(_expand(one, said) for one in said[intent])
            for intent in intents
            if intent in said
        }
        return "|".join(f"(?P<{intent}>{pattern})" for intent, pattern in patterns.items())

    return _Phrases(
        phrases=re.compile(f"(?:(?:{any_of(_PHRASES)}|bot|footnote)(?: |$)){{1,{MAX_PHRASES}}}"),
        requests=_polite(any_of(_REQUESTS), said),
    )


@cache
def _commands() -> _Commands:
    said = _patterns(Language.ENGLISH)

    def each_of(intent: ChatIntent) -> tuple[re.Pattern[str], ...]:
        return tuple(_polite(_expand(one, said), said) for one in said[intent])

    articles = f"(?:(?:{said['article']}) )*"
    called = f"(?:(?P<document>{said['document']}) (?:(?:{said['named']}) )?{articles})?"
    return _Commands(
        presence=each_of(ChatIntent.DOCUMENT_PRESENCE),
        outline=each_of(ChatIntent.DOCUMENT_OUTLINE),
        naming={intent: each_of(intent) for intent in _NAMING},
        before_name=re.compile(f"{articles}{called}"),
        behind_name=re.compile(f"(?:^| )(?:{said['document']})$"),
        kind=re.compile(said["kinds"]),
        topic_words=frozenset(said["topic_words"].split()),
    )


def _patterns(language: Language) -> Mapping[str, Any]:
    file = files("bot.chat").joinpath("phrases", f"{language}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _polite(pattern: str, said: Mapping[str, Any]) -> re.Pattern[str]:
    lead = "|".join((said["leads"], *said["greeting"], "ok(?:ay)?"))
    return re.compile(f"(?:(?:{lead}) ){{0,3}}(?:{pattern})(?: (?:{said['tails']})){{0,2}}")


def _expand(pattern: str, said: Mapping[str, Any]) -> str:
    """Expand the <macros> of a pattern; next to a name, <here> becomes a named group."""
    parts = {name: f"(?:{words})" for name, words in said.items() if name in {"docs", "here", "when"}}
    if "<more>" in pattern:
        parts["more"] = f"(?:{said['here']}|{said['when']}|{said['known']})"
    parts["models"], parts["name"] = _MODELS, "(?P<name>.+?)"
    parts["number"] = r"(?P<name>\d{1,6})"
    if "<name>" in pattern and "here" in said:
        parts["here"] = f"(?P<here>{said['here']})"
    return _MACRO.sub(lambda macro: parts[macro[1]], pattern)
