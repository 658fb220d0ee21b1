"""Watched folders as upload targets of the console, each with the reason if it cannot be written to."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bot.answers.understanding.channel_folders import folder_name
from storage.chat.channels import Channels
from storage.folders.folders import Folders
from storage.models import Channel
from storage.mounts import may_hang

# Name of the channel that a first upload creates.
FIRST_CHANNEL = "documents"
# Timeout of a folder check: it may be on a network share that hangs.
CHECK_TIMEOUT_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class UploadPlace:
    """A watched folder as an upload target."""

    # Value in a form.
    key: str
    location: str
    # Channels that the folder feeds; empty if its first upload will create one.
    channels: tuple[Channel, ...]
    # The folder is created by its first upload.
    is_new: bool = False
    # Why uploads are impossible, as a sentence; None: they are possible.
    problem: str | None = None


class UploadPlaces:
    """Lists the folders of channels, without direct chats."""

    def __init__(self, folders: Folders, channels: Channels, inbox: Path) -> None:
        """Offer a new folder in ``inbox`` for each channel that no folder feeds."""
        self._folders = folders
        self._channels = channels
        self._inbox = inbox

    async def all(self) -> list[UploadPlace]:
        """Return all places, sorted by their channels' names.

        Raises:
            storage.errors.DatabaseUnavailable: the folders cannot be read.
        """
        return list(await asyncio.gather(*(_checked(one) for one in await self._list())))

    async def get(self, key: str) -> UploadPlace | None:
        """Return the place with a form's key; raises as ``all``."""
        known = await self._list()
        found = [one for one in known if one.key == key]
        # A form opened before the channel had a folder names the channel: use the folder it has now.
        found += [one for one in known if key in {f"c{each.id}" for each in one.channels}]
        return await _checked(found[0]) if found else None

    async def for_channel(self, channel_id: int) -> UploadPlace | None:
        """Return a channel's first place without a problem, else its first; raises as ``all``."""
        known = [one for one in await self._list() if channel_id in {each.id for each in one.channels}]
        places = [await _checked(one) for one in known]
        return next((one for one in places if one.problem is None), places[0] if places else None)

    async def first(self) -> UploadPlace | None:
        """Return the place that creates the first channel; None if channels exist. Raises as ``all``."""
        known = await self._list()
        return await _checked(known[0]) if known and not known[0].channels else None

    async def _list(self) -> list[UploadPlace]:
        channels = {one.id: one for one in await self._channels.all() if not one.is_direct}
        if not channels:
            return [UploadPlace("first", str(self._inbox / FIRST_CHANNEL), (), is_new=True)]
        fed: dict[str, list[Channel]] = defaultdict(list)
        keys: dict[str, str] = {}
        for folder in await self._folders.watched():
            if folder.channel_id in channels:
                fed[folder.location].append(channels[folder.channel_id])
                keys.setdefault(folder.location, str(folder.id))
        places = [UploadPlace(keys[location], location, tuple(owners)) for location, owners in fed.items()]
        unfed = channels.keys() - {one.id for owners in fed.values() for one in owners}
        for channel in (channels[one] for one in unfed):
            location = str(self._inbox / folder_name(channel))
            places.append(UploadPlace(f"c{channel.id}", location, (channel,), is_new=True))
        return sorted(places, key=_order)


def _order(place: UploadPlace) -> tuple[Sequence[str], str]:
    return [one.name.casefold() for one in place.channels], place.location


async def _checked(place: UploadPlace) -> UploadPlace:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
            problem = await asyncio.to_thread(_problem, place.location, is_new=place.is_new)
    except TimeoutError:
        problem = "It does not answer: is its share connected?"
    except OSError as error:
        problem = f"It cannot be read: {error.strerror}."
    return replace(place, problem=problem)


def _problem(location: str, *, is_new: bool) -> str | None:
    if "://" in location:
        return "It is not on this machine, and Footnote only reads there."
    path = Path(location)
    if path.is_symlink():
        return "It is a symbolic link; uploads don't follow links."
    if not path.is_dir():
        if not is_new or not path.parent.is_dir():
            return "It is missing: is its disk or share connected?"
        path = path.parent
    if may_hang(path):
        return "It is on a network share; Footnote writes to local disks only."
    return None if os.access(path, os.W_OK | os.X_OK) else "Footnote may not write into it."
