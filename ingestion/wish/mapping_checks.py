"""What a folder map must not say: unknown places, malformed channels, one folder inside another."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ingestion.sources import open_source
from ingestion.sources.address import read_address
from ingestion.sources.patience import real_path
from storage.channels import is_folder_name
from storage.errors import InvalidTenant, SettingsError
from storage.models import TenantName
from storage.references import fault_of
from storage.toml_lines import KeyPath

_CHAT = ("sl_", "ms_")


@dataclass(frozen=True, slots=True)
class FolderMapEntry:
    """One folder that is to feed one channel."""

    location: str
    """As the folder's row will hold it: an absolute path, or a URL in one spelling."""
    channel: str
    """A tenant name, or the name of a local channel."""
    name: str | None = None
    """What people call the channel."""
    every: float | None = None
    """Seconds between two scans; None: as the settings say."""
    is_paused: bool = False
    ask_from_share: float | None = None
    """An admin is asked when more than this share of the channel vanished; None: as the settings say."""
    passwords: tuple[str, ...] = ()
    """References to the passwords of its PDFs."""
    key: KeyPath = ()
    """Where the map says so."""


class _Root(NamedTuple):
    """Where a location really lies: its server, or '' for this machine, and its path, name by name."""

    server: str
    parts: tuple[str, ...]

    def holds(self, other: _Root) -> bool:
        return self.server == other.server and other.parts[: len(self.parts)] == self.parts


Fault = tuple[KeyPath, str]
"""Where, and a sentence that says what to do."""


def resolve_location(location: str, home: Path) -> str:
    """A location as the tables hold it; a path that is not absolute starts in the home."""
    if "://" in location:
        try:
            return str(read_address(location))
        except SettingsError:
            return location  # the check of the location will say so
    return os.path.normpath(home / Path(location).expanduser())


def faults(
    entries: Sequence[FolderMapEntry], names: Mapping[str, str], home: Path, inbox: Path
) -> Iterator[Fault]:
    """Everything that is wrong with these wishes together."""
    for channel in names:
        yield from _channel_faults(("names", channel), channel, names[channel])
    roots: dict[KeyPath, _Root] = {}
    for entry in entries:
        yield from _channel_faults(entry.key, entry.channel, entry.name)
        if entry.key in roots:
            continue
        yield from _password_faults(entry)
        sentence = _location_fault(entry.location)
        if sentence is not None:
            yield (*entry.key, "location"), sentence
        else:
            roots[entry.key] = _root(entry.location)
    yield from _name_faults(entries, names)
    yield from _doubles(entries)
    yield from _nested(entries, roots)
    yield from _around_home(roots, home, inbox)


def _location_fault(location: str) -> str | None:
    """Why nothing can ever be watched there; a place that is only away is no mistake."""
    if "\0" in location:
        return "location: a path cannot hold a NUL"
    try:
        open_source(location).close()
    except SettingsError as error:
        return f"location: {error}"
    return None


def _password_faults(entry: FolderMapEntry) -> Iterator[Fault]:
    """Every sentence once, and none with what was written: it may be a password."""
    for sentence in dict.fromkeys(map(fault_of, entry.passwords)):
        if sentence is not None:
            yield (*entry.key, "passwords"), f"passwords: {sentence}"


def _channel_faults(key: KeyPath, channel: str, name: str | None) -> Iterator[Fault]:
    where = key if key[0] == "names" else (*key, "channel")
    try:
        tenant: str | None = TenantName(channel)
    except InvalidTenant:
        tenant = None
    if tenant is not None and not channel.startswith("lo_"):
        return
    if channel.startswith((*_CHAT, "#")) or not (tenant or is_folder_name(channel)):
        yield (
            where,
            f"channel {channel!r} is malformed: copy it from `footnote channels`, or name a local one",
        )
    elif name not in (None, channel):
        yield where, f"channel {channel!r} is a local one and cannot be called otherwise: leave its name out"


def _name_faults(entries: Sequence[FolderMapEntry], names: Mapping[str, str]) -> Iterator[Fault]:
    called = dict(names)
    for entry in entries:
        if entry.name is not None and called.setdefault(entry.channel, entry.name) != entry.name:
            yield (
                (*entry.key, "name"),
                f"channel {entry.channel!r} is called {called[entry.channel]!r} elsewhere: choose one name",
            )


def _doubles(entries: Sequence[FolderMapEntry]) -> Iterator[Fault]:
    seen = set()
    for entry in entries:
        if (entry.location, entry.channel) in seen:
            yield (
                (*entry.key, "location"),
                f"this folder feeds {entry.channel!r} already: take one of the two away",
            )
        seen.add((entry.location, entry.channel))


def _nested(entries: Sequence[FolderMapEntry], roots: Mapping[KeyPath, _Root]) -> Iterator[Fault]:
    """Folders inside one another, and one folder in two spellings; sorted, an outer one comes first."""
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
            yield (*key, "location"), "this folder holds our own home: watch a folder beside or below it"
        elif root.holds(dropped) or dropped.holds(root):
            yield (
                (*key, "location"),
                "this folder and the inbox lie in one another; folders in the inbox need no entry",
            )


def _root(location: str) -> _Root:
    if "://" in location:
        address = read_address(location)
        return _Root(f"{address.protocol}://{address.server}", address.parts)
    return _Root("", Path(real_path(location)).parts)
