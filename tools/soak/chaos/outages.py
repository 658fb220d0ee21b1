"""Outages around a service: full disk, unreachable share, clock jumps."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random

from engines.support.shares import ServedFolder, ShareServer

DISK = "512m"
FULL_SECONDS = (3.0, 8.0)
AWAY_SECONDS = (4.0, 12.0)
# Clock errors after a jump.
AHEAD_SECONDS = (-7200.0, -90.0, 0.0, 90.0, 7200.0)


class SmallDisk:
    """A small file system that can be filled; mounted only as root.

    Otherwise it is a folder that never gets full.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._ballast = folder / "ballast"
        self.is_mounted = os.geteuid() == 0
        if self.is_mounted:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], check=True)

    def close(self) -> None:
        """Unmount it."""
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", self._folder], check=True)

    @asynccontextmanager
    async def full(self) -> AsyncIterator[None]:
        """Keep the disk full until the block ends, even if space is freed in between."""
        filling = asyncio.create_task(self._keep_full())
        try:
            yield
        finally:
            filling.cancel()
            with suppress(asyncio.CancelledError):
                await filling
            self._ballast.unlink(missing_ok=True)

    async def _keep_full(self) -> None:
        with self._ballast.open("ab") as ballast:
            while True:
                if free := shutil.disk_usage(self._folder).free:
                    with suppress(OSError):
                        os.posix_fallocate(ballast.fileno(), ballast.tell(), free)
                        ballast.seek(0, os.SEEK_END)
                await asyncio.sleep(0.1)


async def cut_off(server: ShareServer, share: ServedFolder, chance: Random) -> None:
    """Kill or pause the server of a share, or remove its folder, for some seconds."""
    seconds, kind = chance.uniform(*AWAY_SECONDS), chance.choice(("killed", "hangs", "vanished"))
    gone = share.folder.with_name(f"{share.folder.name}.gone")
    if kind == "killed":
        server.kill()
    elif kind == "hangs":
        server.pause()
    else:
        share.vanish()
    try:
        await asyncio.sleep(seconds)
    finally:
        if kind == "killed":
            await asyncio.to_thread(server.start)
        elif kind == "hangs":
            server.resume()
        else:
            gone.rename(share.folder)
