"""Checks of the storage engines: SQL, blob store and index, with versions, replication and nodes."""

from __future__ import annotations

from bot.health.findings import Finding, fail, ok, warn
from bot.health.installation import Installation, NoDatabase
from storage.errors import (
    BlobsUnavailable,
    ChangedIndex,
    DatabaseUnavailable,
    EngineStartError,
    IndexUnavailable,
    NewerDatabase,
    OlderDatabase,
    docs_url,
)
from storage.files.store_owner import store_fault
from storage.stores import open_blob_store, weaviate_address
from storage.threads import run_in_thread

# Timeout of a request to an engine.
SECONDS = 3.0
TROUBLESHOOTING = docs_url("troubleshooting.md")
START = "start `footnote serve`"


async def check_sql(installation: Installation) -> Finding:
    """Check that the database answers, is this release's and is writable."""
    other = f"{TROUBLESHOOTING}#the-database-is-of-another-release"
    try:
        status = await (await installation.database()).status()
    except NoDatabase as error:
        return warn(str(error), f"{START}, which creates it", f"{TROUBLESHOOTING}#serve-is-not-running")
    except OlderDatabase as error:
        return fail(
            str(error),
            f"back it up with the release that wrote it, then {START}: it migrates the tables",
            other,
        )
    except NewerDatabase as error:
        return fail(str(error), "install that release, or restore the backup made before it", other)
    except DatabaseUnavailable as error:
        fix = "check that the database runs, and its disk, owner and DATABASE_URL"
        return fail(str(error), fix, f"{TROUBLESHOOTING}#the-database-does-not-answer")
    if status.is_replica:
        return fail(
            f"{status.engine} is a read-only replica",
            "name the primary server in DATABASE_URL",
            f"{TROUBLESHOOTING}#the-database-does-not-answer",
        )
    followers = "" if status.followers is None else f", {status.followers} replicas"
    return ok(f"{status.engine}, tables are current{followers}")


async def check_blobs(installation: Installation) -> Finding:
    """Check that the blob store answers, is writable and belongs to this home."""
    settings, docs = installation.settings.storage, f"{TROUBLESHOOTING}#the-blob-store-does-not-answer"
    store = open_blob_store(settings)
    try:
        if store is not None:
            await run_in_thread(store.verify_access)
        if (database := await installation.database_for("the blob store's owner")) is not None:
            if fault := await store_fault(database, store):
                return fail(fault, "follow the message", docs)
    except BlobsUnavailable as error:
        fix = "check FOOTNOTE_BLOBS, AWS_ENDPOINT_URL and the account, which must be able to write and delete"
        return fail(str(error), fix, docs)
    return ok("in the home" if store is None else "the external store is writable and belongs to this home")


async def check_index(installation: Installation) -> list[Finding]:
    """Check that the index answers, its version and nodes, and that it is the one the documents are in."""
    settings = installation.settings.storage
    away = f"{TROUBLESHOOTING}#the-index-does-not-answer"
    if settings.weaviate_url is None:
        return [ok("embedded (SQLite FTS5 and numpy)"), *await _identity(installation)]
    address = weaviate_address(settings)
    if address is None:
        return [_idle_child(installation)]
    from storage.index.weaviate.status import read_status  # noqa: PLC0415 - its client is slow to import

    try:
        status = await read_status(*address, SECONDS)
    except IndexUnavailable as error:
        fix = "start Weaviate, or correct WEAVIATE_URL and WEAVIATE_API_KEY"
        return [fail(f"{address.url}: {error}", fix, away)]
    found = []
    if not status.takes_grpc:
        text = f"nothing listens on the gRPC port {address.grpc_port}"
        found.append(fail(text, "open that port, or set FOOTNOTE_WEAVIATE_GRPC_PORT", away))
    found += _weaviate(status.version, status.nodes, status.replicas, is_old=status.is_old)
    return [*found, *(await _identity(installation) if status.replicas and status.takes_grpc else [])]


def _idle_child(installation: Installation) -> Finding:
    """Return the finding for our own Weaviate while it is not running."""
    from storage.index.weaviate.process import require_binary  # noqa: PLC0415 - the same

    try:
        require_binary(installation.settings.storage.weaviate_binary)
    except EngineStartError as error:
        return fail(str(error), "follow the message", f"{TROUBLESHOOTING}#the-index-does-not-answer")
    if installation.server_url:
        text = "our own Weaviate does not run, though `footnote serve` does"
        return fail(
            text,
            "see the end of weaviate/log.txt in the home",
            f"{TROUBLESHOOTING}#the-index-does-not-answer",
        )
    return ok("our own Weaviate, which starts with `footnote serve`")


def _weaviate(version: str, nodes: dict[str, str], replicas: int | None, *, is_old: bool) -> list[Finding]:
    docs = f"{TROUBLESHOOTING}#weaviate-is-too-old-or-a-node-is-away"
    found = []
    if is_old:
        text = f"Weaviate {version} is too old"
        found.append(
            fail(text, f"upgrade it, one minor release after the other: {docs_url('weaviate.md')}", docs)
        )
    sick = [f"{name} ({status})" for name, status in nodes.items() if status != "HEALTHY"]
    if sick:
        found.append(fail(f"not healthy: {', '.join(sick)}", "bring the node back", docs))
    if replicas is not None and len(nodes) > 1 and replicas < min(3, len(nodes)):
        found.append(
            warn(
                f"{len(nodes)} nodes, but {replicas} copy of each tenant",
                "recreate the collection with FOOTNOTE_WEAVIATE_REPLICAS=3: "
                f"{docs_url('weaviate.md#a-cluster')}",
                docs,
            )
        )
    copies = "the collection does not exist yet" if replicas is None else f"replication factor {replicas}"
    return found or [ok(f"Weaviate {version}, nodes {len(nodes)}, {copies}")]


async def _identity(installation: Installation) -> list[Finding]:
    """Return a finding if the index is not this home's; none if SQL is unavailable or does not know."""
    database = await installation.database_for("the index")
    try:
        if database is not None:
            await installation.index(database)
    except ChangedIndex as error:
        fix = "set WEAVIATE_URL back, or begin with an empty home and the same inbox"
        return [fail(str(error), fix, f"{TROUBLESHOOTING}#documents-are-missing-from-the-index")]
    return []
