"""Reads ``folders.toml``, in which admins say which folders feed which channels.

A file with a mistake is worth nothing as a whole: whoever watches keeps the mapping it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ingestion.wish.mapping_checks import FolderMapEntry, faults, resolve_location
from storage.toml_lines import KeyPath, Lines, NotToml, read_toml

MAP_NAME = "folders.toml"
MAX_PASSWORDS = 50
"""Of one folder: each costs a hundredth of a second for every page of a locked PDF that is drawn."""
_WORDS = {
    "extra_forbidden": "is not known here; check its spelling",
    "missing": "is missing",
}


@dataclass(frozen=True, slots=True, order=True)
class FolderMapMistake:
    """Something in the file that has to be put right."""

    line: int
    sentence: str

    def __str__(self) -> str:
        return f"{MAP_NAME}:{self.line}: {self.sentence}"


class InvalidFolderMap(Exception):
    """The file says nothing that could be followed; ``mistakes`` says why."""

    def __init__(self, mistakes: list[FolderMapMistake]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = sorted(mistakes)


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Place(_Table):
    """A folder and how it is watched."""

    location: str = Field(min_length=1)
    every: float | None = Field(None, ge=0.2, le=86_400)
    pause: bool = False
    ask_before_deleting_share: float | None = Field(None, gt=0, le=1)
    passwords: list[str] = Field([], max_length=MAX_PASSWORDS)


class _Folder(_Place):
    channel: str = Field(min_length=1)
    name: str | None = Field(None, min_length=1, max_length=80)


class _Library(_Table):
    channels: list[str] = Field(min_length=1)
    folder: list[_Place] = Field(min_length=1)


class _Map(_Table):
    names: dict[str, str] = {}
    folder: list[_Folder] = []
    library: dict[str, _Library] = {}


def check_map(path: Path, inbox: Path | None = None) -> list[FolderMapMistake]:
    """Everything that is wrong in a map, by line; nothing is watched, written or asked over a network.

    Args:
        path: ``folders.toml`` in its home.
        inbox: the watched inbox; by default the one in the home.
    """
    try:
        read_map(path.read_bytes(), path.parent, inbox or path.parent / "inbox")
    except InvalidFolderMap as invalid:
        return invalid.mistakes
    except FileNotFoundError:
        return []
    except OSError as error:
        return [FolderMapMistake(1, f"the file cannot be read: {error.strerror}")]
    return []


def read_map(data: bytes, home: Path, inbox: Path) -> list[FolderMapEntry]:
    """What a map asks for: one wish for each folder and channel.

    Args:
        data: the bytes of the file.
        home: the folder that it lies in; relative locations start there.
        inbox: the watched inbox, which the map has to leave alone.

    Raises:
        InvalidMap: with every mistake that could be found.
    """
    try:
        values, lines = read_toml(data)
    except NotToml as error:
        raise InvalidFolderMap([FolderMapMistake(error.line, error.sentence)]) from None
    try:
        asked = _Map.model_validate(values)
    except ValidationError as error:
        raise InvalidFolderMap(
            [_mistake(lines, one["loc"], one["type"], one["msg"]) for one in error.errors()]
        ) from None
    entries = list(_entries(asked, home))
    found = [
        FolderMapMistake(lines.of(key), sentence)
        for key, sentence in faults(entries, asked.names, home, inbox)
    ]
    if found:
        raise InvalidFolderMap(found)
    return entries


def _mistake(lines: Lines, key: KeyPath, kind: str, message: str) -> FolderMapMistake:
    name = next((part for part in reversed(key) if isinstance(part, str)), "this")
    words = _WORDS.get(kind) or message[0].lower() + message[1:]
    return FolderMapMistake(lines.of(key), f"{name}: {words}" if kind not in _WORDS else f"{name} {words}")


def _entries(asked: _Map, home: Path) -> Iterator[FolderMapEntry]:
    for index, folder in enumerate(asked.folder):
        name = folder.name or asked.names.get(folder.channel)
        yield _entry(folder, folder.channel, name, home, ("folder", index))
    for title, library in asked.library.items():
        for channel in library.channels:
            for index, place in enumerate(library.folder):
                key: KeyPath = ("library", title, "folder", index)
                yield _entry(place, channel, asked.names.get(channel), home, key)


def _entry(place: _Place, channel: str, name: str | None, home: Path, key: KeyPath) -> FolderMapEntry:
    return FolderMapEntry(
        location=resolve_location(place.location, home),
        channel=channel,
        name=name,
        every=place.every,
        is_paused=place.pause,
        ask_from_share=place.ask_before_deleting_share,
        passwords=tuple(place.passwords),
        key=key,
    )
