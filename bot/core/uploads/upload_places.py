"""The watched folders, each with what keeps people from uploading into it through the console."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bot.core.understanding.channel_folders import folder_name
from storage.chat.channels import Channels
from storage.folders.folders import Folders
from storage.models import Channel
from storage.mounts import may_hang

# What the channel of a first upload is called where there is none yet.
FIRST_CHANNEL = "documents"
# How long a folder may take to say how it is: it may lie on a share, and shares hang.
LOOKING_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class UploadPlace:
    """A folder that feeds channels."""

    # Names it in a form.
    key: str
    location: str
    # None yet where the folder is going to make one.
    channels: tuple[Channel, ...]
    # It is made by its first upload.
    is_new: bool = False
    # Why nothing can be uploaded into it, as a sentence.
    problem: str | None = None


class UploadPlaces:
    """Finds the folders of channels, those of direct chats left out."""

    def __init__(self, folders: Folders, channels: Channels, inbox: Path) -> None:
        """A channel that nothing feeds gets its folder in ``inbox``."""
        self._folders = folders
        self._channels = channels
        self._inbox = inbox

    async def all(self) -> list[UploadPlace]:
        """Return all of them, by their channels' names.

        Raises:
            storage.errors.DatabaseUnavailable: nobody knows just now.
        """
        return list(await asyncio.gather(*(_looked_at(one) for one in await self._known())))

    async def get(self, key: str) -> UploadPlace | None:
        """Return the place that a form names; raises as ``all``.

        A form that was sent for before its channel had a folder is for the one that it has now.
        """
        known = await self._known()
        found = [one for one in known if one.key == key]
        found += [one for one in known if key in {f"c{each.id}" for each in one.channels}]
        return await _looked_at(found[0]) if found else None

    async def of_channel(self, channel_id: int) -> UploadPlace | None:
        """Return the first place that can be uploaded into, or the first one; raises as ``all``."""
        known = [one for one in await self._known() if channel_id in {each.id for each in one.channels}]
        places = [await _looked_at(one) for one in known]
        return next((one for one in places if one.problem is None), places[0] if places else None)

    async def first(self) -> UploadPlace | None:
        """What makes the first channel; None: there are some. Raises as ``all``."""
        known = await self._known()
        return await _looked_at(known[0]) if known and not known[0].channels else None

    async def _known(self) -> list[UploadPlace]:
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


async def _looked_at(place: UploadPlace) -> UploadPlace:
    try:
        async with asyncio.timeout(LOOKING_SECONDS):
            problem = await asyncio.to_thread(_problem, place.location, is_new=place.is_new)
    except TimeoutError:
        problem = "It does not answer: is its share connected?"
    except OSError as error:
        problem = f"It cannot be looked at: {error.strerror}."
    return replace(place, problem=problem)


def _problem(location: str, *, is_new: bool) -> str | None:
    if "://" in location:
        return "It is not on this machine, and Footnote only reads there."
    path = Path(location)
    if path.is_symlink():
        return "It is a link, and uploads follow none."
    if not path.is_dir():
        if not is_new or not path.parent.is_dir():
            return "It is missing: is its disk or share connected?"
        path = path.parent
    if may_hang(path):
        return "It lies on a share, and Footnote writes to local disks only."
    return None if os.access(path, os.W_OK | os.X_OK) else "Footnote may not write into it."
