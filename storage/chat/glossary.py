"""Reads ``glossary.toml``, in which admins say which words of people mean which words of documents.

The file is followed while it changes; one with a mistake changes nothing until it is put right.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storage.chat.channels import is_folder_name, named_tenant
from storage.chat_models import GlossaryEntry
from storage.config_file import KeyPath, NotToml, read_toml
from storage.errors import InvalidTenant
from storage.models import Channel, TenantName

GLOSSARY_NAME = "glossary.toml"
MAX_TERMS = 2000
"""Of all tables together: every question is compared with all of its channel."""
MAX_WORDS = 20
MAX_WORD_CHARS = 100
"""Characters of a term, and of each of its words."""

_log = logging.getLogger(__name__)
_CHAT = ("sl_", "ms_")
_Stamp = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, order=True)
class GlossaryMistake:
    """Something in the file that has to be put right."""

    line: int
    sentence: str

    def __str__(self) -> str:
        return f"{GLOSSARY_NAME}:{self.line}: {self.sentence}"


class InvalidGlossary(Exception):
    """The file says nothing that could be followed; ``mistakes`` says why."""

    def __init__(self, mistakes: list[GlossaryMistake]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = sorted(mistakes)


@dataclass(frozen=True, slots=True)
class Glossary:
    """The entries of a file."""

    everywhere: tuple[GlossaryEntry, ...] = ()
    by_channel: Mapping[str, tuple[GlossaryEntry, ...]] = field(default_factory=dict)
    """By the word that the file has for a channel: a tenant name, or the name of a local one."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """Where each channel's entries begin."""

    def of(self, channel: Channel) -> tuple[GlossaryEntry, ...]:
        """What holds in a channel: its own entries, then everybody's."""
        own = [self.by_channel[name] for name in self.by_channel if named_tenant(name) == channel.tenant]
        return (*(entry for entries in own for entry in entries), *self.everywhere)

    def unknown(self, channels: Iterable[Channel]) -> list[GlossaryMistake]:
        """Entries for channels that are none of these, as a misspelled one is."""
        tenants = {channel.tenant for channel in channels}
        return [
            GlossaryMistake(
                self.lines[name], f"there is no channel {name!r} yet; `footnote channels` lists them"
            )
            for name in self.by_channel
            if named_tenant(name) not in tenants
        ]


class GlossaryFile:
    """The glossary as it is in force."""

    def __init__(self, path: Path) -> None:
        """Follow the file at ``path``, which need not be there."""
        self._path = path
        self._lock = threading.Lock()
        self._seen: _Stamp | None = None
        self._in_force = Glossary()
        self.mistakes: list[GlossaryMistake] = []
        """Why the file as it is now is not in force."""

    async def entries(self, channel: Channel) -> tuple[GlossaryEntry, ...]:
        """What the file, as it is now, says for a channel; while it has a mistake, what it said before."""
        return (await self.current()).of(channel)

    async def current(self) -> Glossary:
        """The glossary in force."""
        return await asyncio.to_thread(self._follow)

    def _follow(self) -> Glossary:
        with self._lock:
            try:
                self._take_over(self._stamp())
            except InvalidGlossary as invalid:
                self._say(invalid.mistakes)
            except OSError as error:
                self._seen = None
                self._say([GlossaryMistake(1, f"the file cannot be read: {error.strerror}")])
            return self._in_force

    def _stamp(self) -> _Stamp | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino

    def _take_over(self, stamp: _Stamp | None) -> None:
        """Read the file when it is another one than last time; a file that is gone says nothing."""
        if stamp is not None and stamp == self._seen:
            return
        self._seen = stamp
        self._in_force = read_glossary(self._path.read_bytes()) if stamp else Glossary()
        self.mistakes = []

    def _say(self, mistakes: list[GlossaryMistake]) -> None:
        if mistakes != self.mistakes:
            _log.warning(
                "the glossary has mistakes (line %s): what it said before stays in force; "
                "`footnote channels` names them",
                ", ".join(str(one.line) for one in mistakes),
            )
        self.mistakes = mistakes


def read_glossary(data: bytes) -> Glossary:
    """What a file says.

    Raises:
        InvalidGlossary: with every mistake that could be found.
    """
    try:
        values, lines = read_toml(data)
    except NotToml as error:
        raise InvalidGlossary([GlossaryMistake(error.line, error.sentence)]) from None
    faults = list(_faults(values))
    if faults:
        raise InvalidGlossary([GlossaryMistake(lines.of(key), sentence) for key, sentence in faults])
    channels = values.get("channels", {})
    return Glossary(
        _entries(values.get("all", {})),
        {name: _entries(table) for name, table in channels.items()},
        {name: lines.of(("channels", name)) for name in channels},
    )


def _entries(table: Mapping[str, Any]) -> tuple[GlossaryEntry, ...]:
    return tuple(_entry(term, value) for term, value in table.items())


def _entry(term: str, value: Any) -> GlossaryEntry:
    if isinstance(value, dict):
        return GlossaryEntry(term, tuple(value["words"]), value.get("both", False))
    return GlossaryEntry(term, tuple(value))


def _faults(values: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Everything that is wrong, each with its place."""
    for name in values.keys() - {"all", "channels"}:
        yield (name,), f"{name!r} is not known here: terms stand below [all] or [channels.NAME]"
    yield from _table_faults(("all",), values.get("all", {}))
    channels = values.get("channels", {})
    if not isinstance(channels, dict):
        yield ("channels",), "channels: write a table of its own for each, as in [channels.handbook]"
        return
    for name, table in channels.items():
        if not _is_channel(name):
            sentence = f"channel {name!r} is malformed: copy it from `footnote channels`, or name a local one"
            yield ("channels", name), sentence
        yield from _table_faults(("channels", name), table)
    if _count(values) > MAX_TERMS:
        yield (), f"the file has more than {MAX_TERMS} terms: keep those that people really use"


def _count(values: Mapping[str, Any]) -> int:
    tables = [values.get("all", {}), *values.get("channels", {}).values()]
    return sum(len(table) for table in tables if isinstance(table, dict))


def _is_channel(name: str) -> bool:
    """Whether a channel can go by this word."""
    try:
        TenantName(name)
    except InvalidTenant:
        return is_folder_name(name) and not name.startswith((*_CHAT, "#"))
    return True


def _table_faults(place: KeyPath, table: Any) -> Iterator[tuple[KeyPath, str]]:
    if not isinstance(table, dict):
        yield place, f'{place[-1]}: terms stand below it, as in PTO = ["paid time off"]'
        return
    for term, value in table.items():
        if (sentence := _entry_fault(term, value)) is not None:
            yield (*place, term), f"{term!r}: {sentence}"


def _entry_fault(term: str, value: Any) -> str | None:
    """What is wrong with one line."""
    words, both = value, False
    if isinstance(value, dict):
        if value.keys() - {"words", "both"}:
            return "it takes words and both, and nothing else"
        words, both = value.get("words"), value.get("both", False)
    if not isinstance(both, bool):
        return "both is true or false"
    if not isinstance(words, list) or not words or not all(map(_is_word, words)):
        return (
            f'write its words as a list of texts of at most {MAX_WORD_CHARS} letters, as in ["paid time off"]'
        )
    if len(words) > MAX_WORDS:
        return f"it has more than {MAX_WORDS} words: keep those that documents really use"
    return None if _is_word(term) else f"a term holds a word and at most {MAX_WORD_CHARS} letters"


def _is_word(text: Any) -> bool:
    return isinstance(text, str) and len(text) <= MAX_WORD_CHARS and any(map(str.isalnum, text))
