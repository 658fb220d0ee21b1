"""Checks of an installation's contents: folders, and the index against SQL."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Callable, Sequence
from uuid import UUID

from bot.health.findings import Finding, fail, ok, warn
from bot.health.installation import DependencyFailed, Installation
from storage.clock import utc_now
from storage.errors import UnknownTenant, docs_url
from storage.folders.folders import Folders
from storage.index.base import Index
from storage.index.embedded.index import COMFORTABLE_CHUNKS
from storage.models import TenantName
from storage.queues.inventory import Inventory
from storage.sql.audit import BACK_UP, AuditLog
from storage.sql.database import Database
from storage.threads import run_in_thread

# Folders and channels named in a report, which people read.
MAX_NAMED = 10
# Time budget for comparing channels; the reconciler compares all of them.
COMPARE_SECONDS = 8.0
FOLDER_SECONDS = 3.0
# Age from which a backup is too old.
BACKUP_DAYS = 7

TROUBLESHOOTING = docs_url("troubleshooting.md")

# Returns the mistakes of the folder map.
MapMistakes = Callable[[], Sequence[object]]
# Returns the locations of a valid folder map.
MapLocations = Callable[[], Sequence[str]]


async def check_folders(
    installation: Installation, map_mistakes: MapMistakes, map_locations: MapLocations
) -> list[Finding]:
    """Check the folder map, problems of the last scans, and read access to each folder.

    Folders in the map are checked even before they are watched.
    """
    docs = f"{TROUBLESHOOTING}#a-folder-is-not-read"
    found = [
        fail(str(one), "correct that line; `footnote folders --check` lists all mistakes", docs)
        for one in (await run_in_thread(map_mistakes))[:MAX_NAMED]
    ]
    try:
        database = await installation.database_for("the last scans")
    except DependencyFailed as error:
        found.append(warn(str(error), "fix the check sql first", docs))
        database = None
    folders = [one for one in await Folders(database).status() if one.watched] if database else []
    inbox = str(installation.settings.inbox)
    named = [*(one.location for one in folders), *await run_in_thread(map_locations)]
    local = dict.fromkeys([inbox, *(one for one in named if "://" not in one)])
    faults = dict(zip(local, await asyncio.gather(*map(_read_error, local)), strict=True))
    if database is None and faults[inbox] == os.strerror(errno.ENOENT):
        del faults[inbox]  # created by the first start
    for location in [one for one, fault in faults.items() if fault][:MAX_NAMED]:
        fix = "mount or restore it, or grant read access to the user that runs Footnote"
        found.append(fail(f"{location}: {faults[location]}", fix, docs))
    told = [one for one in folders if one.problem and not faults.get(one.location)]
    for one in told[:MAX_NAMED]:
        found.append(fail(f"{one.location}: {one.problem}", "see `footnote folders`", docs))
    asking = sum(bool(one.pending_deletions) for one in folders)
    if asking:
        fix = "see `footnote folders`, then run `footnote folders approve ID`"
        found.append(warn(f"{asking} folders have missing files that need approval", fix, docs))
    return found or [ok(f"{len(folders)} watched; all local ones are readable")]


async def _read_error(location: str) -> str | None:
    """Return why a local folder cannot be read, None if it can."""
    try:
        async with asyncio.timeout(FOLDER_SECONDS):
            await run_in_thread(lambda: next(iter(os.scandir(location)), None))
    except TimeoutError:
        return f"does not answer within {FOLDER_SECONDS:g} s"
    except OSError as error:
        return error.strerror or type(error).__name__
    return None


async def check_contents(installation: Installation) -> list[Finding]:
    """Check that the index holds exactly the live publications, tenant by tenant."""
    database = await installation.database_for("the index")
    sizes = await Inventory(database).sizes() if database else {}
    if database is None or not sizes:
        return [ok("nothing is published yet")]
    index = await installation.index(database)
    if index is None:
        fix = "start `footnote serve`, then run doctor again"
        return [
            warn(
                "not compared: our own Weaviate does not run", fix, f"{TROUBLESHOOTING}#serve-is-not-running"
            )
        ]
    lost, strays, compared = await _compare(database, index, list(sizes))
    rebuilt = await _rebuilding_tenants(database)
    docs = f"{TROUBLESHOOTING}#documents-are-missing-from-the-index"
    fix = "run `footnote reconcile` while `footnote serve` runs, which publishes them again"
    found = [
        fail(f"{tenant}: the index lacks {count} of {sizes[tenant][0]} live documents", fix, docs)
        for tenant, count in list(lost.items())[:MAX_NAMED]
        if tenant not in rebuilt
    ]
    if rebuilt:
        text = f"{', '.join(rebuilt[:MAX_NAMED])}: the index is being rebuilt after an erasure"
        found.append(warn(text, "wait: `footnote serve` or `footnote ingest` finishes it", docs))
    if strays:
        text = f"the index has {strays} orphaned publications"
        found.append(warn(text, "run `footnote reconcile`, which removes them", docs))
    of_all = "" if compared == len(sizes) else f"; {compared} of {len(sizes)} channels were compared"
    documents = sum(publications for publications, _ in sizes.values())
    return found or [ok(f"{documents} documents in {len(sizes)} channels match the database{of_all}")]


async def _compare(
    database: Database, index: Index, tenants: Sequence[TenantName]
) -> tuple[dict[TenantName, int], int, int]:
    """Return (tenant -> missing publications, publications unknown to SQL, tenants compared)."""
    inventory, until = Inventory(database), time.monotonic() + COMPARE_SECONDS
    channels = await inventory.tenants()
    damaged = await index.upkeep.corrupt_tenants() if index.upkeep else set()
    lost: dict[TenantName, int] = {}
    strays = compared = 0
    for tenant in tenants:
        if time.monotonic() > until:
            break
        held = await _indexed_publications(index, tenant)
        live = {one.id: one.objects for one in await inventory.live(channels[tenant])}
        missing = [one for one, objects in live.items() if held.get(one, 0) < objects]
        if missing:  # list the index again: they may have been published since
            again = await _indexed_publications(index, tenant)
            missing = [one for one in missing if again.get(one, 0) < live[one]]
        if missing or tenant in damaged:
            lost[tenant] = len(missing) or len(live)
        strays += len(await inventory.orphans(held))
        compared += 1
    return lost, strays, compared


async def _rebuilding_tenants(database: Database) -> list[TenantName]:
    """Return the tenants whose index is being rebuilt."""
    inventory = Inventory(database)
    running = await inventory.rebuilds.running()
    return [tenant for tenant, id in (await inventory.tenants()).items() if id in running]


async def _indexed_publications(index: Index, tenant: TenantName) -> dict[UUID, int]:
    try:
        return dict(await index.publications(tenant))
    except UnknownTenant:
        return {}


async def check_backup(installation: Installation) -> Finding:
    """Check the age and completeness of the last `footnote backup`."""
    docs = f"{TROUBLESHOOTING}#there-is-no-recent-backup"
    database = await installation.database_for("the last backup")
    if database is None or not await Inventory(database).sizes():
        return ok("there is nothing to back up yet")
    fix = f"run `footnote backup URL` by a timer: {docs_url('company.md#9-back-up-by-a-timer')}"
    last = await AuditLog(database).last(BACK_UP)
    if last is None:
        return warn("`footnote backup` has never run", fix, docs)
    days = (utc_now() - last.at).days
    text = f"the last backup is {'less than a day' if days < 1 else f'{days} days'} old"
    if not last.is_done:
        return warn(f"{text} and lacks damaged files", "run `footnote reconcile`, then back up again", docs)
    return warn(text, fix, docs) if days > BACKUP_DAYS else ok(text)


async def check_sizes(installation: Installation) -> list[Finding]:
    """Check for channels that are too large for quick answers from the embedded index."""
    database = await installation.database_for("sizes")
    sizes = await Inventory(database).sizes() if database else {}
    largest = max((objects for _, objects in sizes.values()), default=0)
    text = f"the largest channel has {largest} chunks"
    if installation.settings.storage.weaviate_url is not None:
        return [ok(text)]
    crowded = {tenant: objects for tenant, (_, objects) in sizes.items() if objects > COMFORTABLE_CHUNKS}
    return [
        warn(
            f"{tenant} has {objects} chunks; the embedded index is quick up to {COMFORTABLE_CHUNKS}",
            f"move to Weaviate: {docs_url('weaviate.md')}",
            f"{TROUBLESHOOTING}#a-channel-has-outgrown-the-embedded-index",
        )
        for tenant, objects in list(crowded.items())[:MAX_NAMED]
    ] or [ok(f"{text}; the embedded index is quick up to {COMFORTABLE_CHUNKS}")]
