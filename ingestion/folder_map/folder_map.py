"""Parser and validator of ``folders.toml``, in which admins map folders to channels.

Rejects unknown locations, malformed channels and nested folders. A file with a single mistake is rejected
as a whole: the mapping in force stays.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from ingestion.sources import open_source
from ingestion.sources.shares.address import read_address
from ingestion.sources.watchdog import real_path
from storage.chat.channels import is_folder_name, library_channel
from storage.config_file import MAP_NAME, InvalidFile, KeyPath, Mistake, read_file
from storage.errors import InvalidTenant, SettingsError
from storage.models import CHAT_PREFIXES, TenantName
from storage.settings import reference_error

# (key in the file, message that says what to do).
Fault = tuple[KeyPath, str]

# Per folder: each costs 10 ms for every rendered page of a locked PDF.
MAX_PASSWORDS = 50


@dataclass(frozen=True, slots=True)
class FolderMapEntry:
    """A folder and the channel that it feeds."""

    # As in the folder's row: an absolute path, or a normalised URL.
    location: str
    # Tenant name, or name of a local channel.
    channel: str
    # Display name of the channel.
    name: str | None = None
    # Seconds between two scans; None: the settings' value.
    every: float | None = None
    is_paused: bool = False
    # An admin is asked if more than this fraction of the channel disappears; None: the settings' value.
    ask_from_share: float | None = None
    # References to passwords for its PDFs.
    passwords: tuple[str, ...] = ()
    # Position in the map, for messages.
    key: KeyPath = ()
    # Library whose own channel it feeds, for direct chats.
    library: str | None = None
    # Who looks after its documents, as in FOOTNOTE_ADMINS.
    owner: str | None = None
    # Workspaces whose direct chats search that library; matters where anybody may install the bot.
    installations: frozenset[str] = frozenset()


class _Root(NamedTuple):
    """Real path of a location: its server ('' for this machine) and the parts of its path."""

    server: str
    parts: tuple[str, ...]

    def holds(self, other: _Root) -> bool:
        return self.server == other.server and other.parts[: len(self.parts)] == self.parts


def resolve_location(location: str, home: Path) -> str:
    """Return a normalised location, as stored in SQL; a relative path starts in the home."""
    if "://" in location:
        try:
            return str(read_address(location))
        except SettingsError:
            return location  # the check of the location reports it
    return os.path.normpath(home / Path(location).expanduser())


def find_errors(
    entries: Sequence[FolderMapEntry], names: Mapping[str, str], home: Path, inbox: Path
) -> Iterator[Fault]:
    """Yield all errors in these entries."""
    for channel in names:
        yield from _channel_errors(("names", channel), channel, names[channel])
    roots: dict[KeyPath, _Root] = {}
    for entry in entries:
        if entry.library is None:
            yield from _channel_errors(entry.key, entry.channel, entry.name)
        if entry.key in roots:
            continue
        # Once each, and without the value, which may be a password.
        for fault in filter(None, dict.fromkeys(map(reference_error, entry.passwords))):
            yield (*entry.key, "passwords"), f"passwords: {fault}"
        if (sentence := _location_error(entry.location)) is not None:
            yield (*entry.key, "location"), sentence
        else:
            roots[entry.key] = _root(entry.location)
    yield from _name_errors(entries, names)
    yield from _duplicates(entries)
    yield from _nested(entries, roots)
    yield from _around_home(roots, home, inbox)


def _location_error(location: str) -> str | None:
    """Return why a location can never be watched; an unreachable one is no error."""
    if "\0" in location:
        return "location: a path cannot hold a NUL"
    try:
        open_source(location).close()
    except SettingsError as error:
        return f"location: {error}"
    return None


def _channel_errors(key: KeyPath, channel: str, name: str | None) -> Iterator[Fault]:
    where = key if key[0] == "names" else (*key, "channel")
    try:
        tenant: str | None = TenantName(channel)
    except InvalidTenant:
        tenant = None
    if tenant is not None and not channel.startswith("lo_"):
        return
    if channel.startswith((*CHAT_PREFIXES, "#")) or not (tenant or is_folder_name(channel)):
        yield (
            where,
            f"channel {channel!r} is malformed: copy it from `footnote channels`, or name a local one",
        )
    elif name not in (None, channel):
        yield where, f"channel {channel!r} is local and cannot have another name: remove the name"


def _name_errors(entries: Sequence[FolderMapEntry], names: Mapping[str, str]) -> Iterator[Fault]:
    called = dict(names)
    for entry in entries:
        if entry.name is not None and called.setdefault(entry.channel, entry.name) != entry.name:
            yield (
                (*entry.key, "name"),
                f"channel {entry.channel!r} is named {called[entry.channel]!r} elsewhere: choose one name",
            )


def _duplicates(entries: Sequence[FolderMapEntry]) -> Iterator[Fault]:
    seen = set()
    for entry in entries:
        if (entry.location, entry.channel) in seen:
            yield (
                (*entry.key, "location"),
                f"this folder feeds {entry.channel!r} already: remove one of the two",
            )
        seen.add((entry.location, entry.channel))


def _nested(entries: Sequence[FolderMapEntry], roots: Mapping[KeyPath, _Root]) -> Iterator[Fault]:
    """Yield nested folders, and folders in two spellings; sorted, an outer folder comes first."""
    spelled = {entry.key: entry.location for entry in entries if entry.key in roots}
    ordered = sorted(spelled, key=lambda key: roots[key])
    around: list[KeyPath] = []
    for key in ordered:
        while around and not roots[around[-1]].holds(roots[key]):
            around.pop()
        if around and roots[around[-1]] != roots[key]:
            yield (
                (*key, "location"),
                f"this folder lies inside {spelled[around[-1]]}, which is watched too: keep them apart",
            )
        elif around and spelled[around[-1]] != spelled[key]:
            yield (
                (*key, "location"),
                f"this is the same folder as {spelled[around[-1]]}: spell it the same way",
            )
        around.append(key)


def _around_home(roots: Mapping[KeyPath, _Root], home: Path, inbox: Path) -> Iterator[Fault]:
    kept, dropped = _root(str(home)), _root(str(inbox))
    for key, root in roots.items():
        if root.holds(kept):
            yield (*key, "location"), "this folder contains Footnote's home: watch a folder outside of it"
        elif root.holds(dropped) or dropped.holds(root):
            yield (
                (*key, "location"),
                "this folder and the inbox overlap; folders in the inbox need no entry",
            )


def _root(location: str) -> _Root:
    if "://" in location:
        address = read_address(location)
        return _Root(f"{address.protocol}://{address.server}", address.parts)
    return _Root("", Path(real_path(location)).parts)


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Place(_Table):
    """A folder and the options of watching it."""

    location: str = Field(min_length=1)
    every: float | None = Field(None, ge=0.2, le=86_400)
    pause: bool = False
    owner: str | None = Field(None, pattern=r"^[a-z]{2,16}:[\w-]+:[\w-]+$")
    ask_before_deleting_share: float | None = Field(None, gt=0, le=1)
    passwords: list[str] = Field([], max_length=MAX_PASSWORDS)


class _Folder(_Place):
    channel: str = Field(min_length=1)
    name: str | None = Field(None, min_length=1, max_length=80)


class _Library(_Table):
    channels: list[str] = []
    folder: list[_Place] = Field(min_length=1)


class _DirectChats(_Table):
    library: str
    installations: list[str] = []


class _Map(_Table):
    names: dict[str, str] = {}
    folder: list[_Folder] = []
    library: dict[str, _Library] = {}
    direct_chats: _DirectChats | None = None

    @property
    def direct_library(self) -> str | None:
        return self.direct_chats.library if self.direct_chats else None

    @property
    def installations(self) -> frozenset[str]:
        return frozenset(self.direct_chats.installations) if self.direct_chats else frozenset()


def check_map(path: Path, inbox: Path | None = None) -> list[Mistake]:
    """Return all mistakes in a map, by line; nothing is watched or written, and no network is used.

    Args:
        path: path of ``folders.toml`` in its home.
        inbox: the watched inbox; default: the one in the home.
    """
    try:
        read_map(path.read_bytes(), path.parent, inbox or path.parent / "inbox")
    except InvalidFile as invalid:
        return invalid.mistakes
    except FileNotFoundError:
        return []
    except OSError as error:
        return [Mistake(1, f"the file cannot be read: {error.strerror}", MAP_NAME)]
    return []


def map_locations(path: Path, inbox: Path) -> list[str]:
    """Return the locations in a map; empty if it is unreadable or invalid, which ``check_map`` reports."""
    with suppress(InvalidFile, OSError):
        return [one.location for one in read_map(path.read_bytes(), path.parent, inbox)]
    return []


def map_owners(path: Path, inbox: Path) -> dict[str, tuple[str, ...]]:
    """Return channel -> owners of its folders in a map, each once; empty if the map is unreadable."""
    owners: dict[str, tuple[str, ...]] = {}
    with suppress(InvalidFile, OSError):
        for one in read_map(path.read_bytes(), path.parent, inbox):
            if one.owner and one.owner not in (known := owners.get(one.channel, ())):
                owners[one.channel] = (*known, one.owner)
    return owners


def read_map(data: bytes, home: Path, inbox: Path) -> list[FolderMapEntry]:
    """Return the entries of a map, one for each folder and channel.

    Args:
        home: the folder of the file; relative locations start there.
        inbox: the watched inbox, which the map may not overlap.

    Raises:
        InvalidFile: with all mistakes.
    """
    asked, lines = read_file(MAP_NAME, data, _Map)
    entries = list(_entries(asked, home))
    found = [
        Mistake(lines.line_of(key), sentence, MAP_NAME)
        for key, sentence in (*find_errors(entries, asked.names, home, inbox), *_library_errors(asked))
    ]
    if found:
        raise InvalidFile(found)
    return entries


def _library_errors(asked: _Map) -> Iterator[Fault]:
    """Yield libraries that no channel can search, and an unknown library of direct chats."""
    direct = asked.direct_library
    for title, library in asked.library.items():
        if title == direct and not is_folder_name(title):
            yield (
                ("library", title),
                f"library {title!r}: use a valid folder name, without a slash",
            )
        if not library.channels and title != direct:
            yield (
                ("library", title, "channels"),
                f"library {title!r} has no channels: add channels, or use it in [direct_chats]",
            )
    if direct is not None and direct not in asked.library:
        known = ", ".join(asked.library) or "none yet"
        yield (
            ("direct_chats", "library"),
            f"there is no library {direct!r} in this file: name one of its [library.NAME] ({known})",
        )


def _entries(asked: _Map, home: Path) -> Iterator[FolderMapEntry]:
    for index, folder in enumerate(asked.folder):
        name = folder.name or asked.names.get(folder.channel)
        yield _entry(folder, folder.channel, name, home, ("folder", index))
    for title, library in asked.library.items():
        for channel in library.channels:
            for index, place in enumerate(library.folder):
                key: KeyPath = ("library", title, "folder", index)
                yield _entry(place, channel, asked.names.get(channel), home, key)
        if title == asked.direct_library:
            for index, place in enumerate(library.folder):
                own = _entry(place, library_channel(title), None, home, ("library", title, "folder", index))
                yield replace(own, library=title, installations=asked.installations)


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
        owner=place.owner,
    )
