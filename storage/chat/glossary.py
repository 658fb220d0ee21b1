"""Reads ``glossary.toml``, in which admins map users' terms to the words of documents (synonyms).

The file is reloaded when it changes; while it has a mistake, the previous content stays in force.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from storage.chat.channels import is_channel_name, named_tenant
from storage.chat_models import GlossaryEntry
from storage.config_file import AdminFile, Mistake, read_file
from storage.models import Channel

GLOSSARY_NAME = "glossary.toml"
# Over all tables: every question is compared with all terms of its channel.
MAX_TERMS = 2000
MAX_WORDS = 20
# Maximum length of a term, and of each of its words.
MAX_WORD_CHARS = 100

_WORDS = f'write its words as a list of texts of at most {MAX_WORD_CHARS} letters, as in ["paid time off"]'


def _term(term: str) -> str:
    if len(term) > MAX_WORD_CHARS or not any(map(str.isalnum, term)):
        raise PydanticCustomError(
            "term", "a term holds a word and at most {most} letters", {"most": MAX_WORD_CHARS}
        )
    return term


def _channel(name: str) -> str:
    """Accept a name that a channel can have: a tenant name, or that of a local channel."""
    if not is_channel_name(name):
        raise PydanticCustomError(
            "channel", "is malformed: copy it from `footnote channels`, or name a local one"
        )
    return name


def _line(value: Any) -> Any:
    """Expand a list of words to a table with only words."""
    return {"words": value} if isinstance(value, list) else value


Word = Annotated[str, AfterValidator(_term)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    words: list[Word] = Field(min_length=1, max_length=MAX_WORDS)
    both: bool = False


Terms = dict[Word, Annotated[_Line, BeforeValidator(_line)]]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    all: Terms = {}
    channels: dict[Annotated[str, AfterValidator(_channel)], Terms] = {}

    @model_validator(mode="after")
    def _is_short(self) -> _File:
        if sum(map(len, (self.all, *self.channels.values()))) > MAX_TERMS:
            raise PydanticCustomError(
                "terms",
                "the file has more than {most} terms: keep only those in use",
                {"most": MAX_TERMS},
            )
        return self


def _sentence(error: ErrorDetails) -> str:
    """Return what is wrong, and what to write instead."""
    table, *keys = [str(part) for part in error["loc"] if part != "[key]"] or [""]
    if not table:
        return error["msg"]
    if error["type"] == "extra_forbidden" and not keys:
        return f"unknown table {table!r}: put terms under [all] or [channels.NAME]"
    if error["type"] == "channel":
        return f"channel {keys[0]!r} {error['msg']}"
    if error["type"] == "dict_type":
        if table == "channels" and not keys:
            return "channels: write a table of its own for each, as in [channels.handbook]"
        return f'{[table, *keys][-1]}: put terms in this table, as in PTO = ["paid time off"]'
    term, *rest = keys[1:] if table == "channels" else keys
    return f"{term!r}: {_line_sentence(error, rest)}"


def _line_sentence(error: ErrorDetails, keys: list[str]) -> str:
    """Return what is wrong with a term, or with its value at these keys."""
    if error["type"] == "term" and not keys:
        return error["msg"]
    if error["type"] == "extra_forbidden":
        return "only words and both are allowed"
    if keys[:1] == ["both"]:
        return "both is true or false"
    if error["type"] == "too_long":
        return f"it has more than {MAX_WORDS} words: keep only those in use"
    return _WORDS


@dataclass(frozen=True, slots=True)
class Glossary:
    """Entries of a glossary file."""

    everywhere: tuple[GlossaryEntry, ...] = ()
    # By the channel's name in the file: a tenant name, or that of a local channel.
    by_channel: Mapping[str, tuple[GlossaryEntry, ...]] = field(default_factory=dict)
    # First line of each channel's entries.
    lines: Mapping[str, int] = field(default_factory=dict)

    def of(self, channel: Channel) -> tuple[GlossaryEntry, ...]:
        """Return the entries that apply to a channel: its own, then the global ones."""
        own = [self.by_channel[name] for name in self.by_channel if named_tenant(name) == channel.tenant]
        return (*(entry for entries in own for entry in entries), *self.everywhere)

    def unknown(self, channels: Iterable[Channel]) -> list[Mistake]:
        """Return mistakes for entries of channels that are none of these, such as misspelled ones."""
        tenants = {channel.tenant for channel in channels}
        return [
            Mistake(
                self.lines[name],
                f"there is no channel {name!r} yet; `footnote channels` lists them",
                GLOSSARY_NAME,
            )
            for name in self.by_channel
            if named_tenant(name) not in tenants
        ]


class GlossaryFile:
    """Glossary in force."""

    def __init__(self, path: Path) -> None:
        """Follow the file at ``path``; a missing file is an empty glossary."""
        self._file = AdminFile(path, read_glossary, what="the glossary", check_command="footnote channels")

    @property
    def mistakes(self) -> list[Mistake]:
        """Mistakes that keep the current file from being in force."""
        return self._file.mistakes

    async def entries(self, channel: Channel) -> tuple[GlossaryEntry, ...]:
        """Return a channel's entries from the current file; while it has a mistake, from the previous one."""
        return (await self.current()).of(channel)

    async def current(self) -> Glossary:
        """Return the glossary in force."""
        await asyncio.to_thread(self._file.reload_if_changed)
        return self._file.current or Glossary()


def read_glossary(data: bytes) -> Glossary:
    """Parse a glossary file.

    Raises:
        InvalidFile: with every mistake that could be found.
    """
    said, lines = read_file(GLOSSARY_NAME, data, _File, _sentence)
    return Glossary(
        _entries(said.all),
        {name: _entries(terms) for name, terms in said.channels.items()},
        {name: lines.line_of(("channels", name)) for name in said.channels},
    )


def _entries(terms: Terms) -> tuple[GlossaryEntry, ...]:
    return tuple(GlossaryEntry(term, tuple(line.words), line.both) for term, line in terms.items())
