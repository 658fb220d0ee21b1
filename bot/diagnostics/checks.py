"""All checks of an installation, in the order of the report."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from bot.diagnostics import accounts, addresses, contents, engines
from bot.diagnostics.contents import MapLocations, MapMistakes
from bot.diagnostics.installation import Installation
from bot.diagnostics.machine import machine_checks
from bot.diagnostics.models import CHECK_SECONDS, Finding, HealthCheck, fail, ok
from storage.errors import docs_url
from storage.settings import StorageSettings

# Timeout of checks that load a model or list whole channels.
LONG_SECONDS = 15.0

PAGES = docs_url("troubleshooting.md")
SETTINGS_PAGE = f"{PAGES}#a-setting-is-refused"
Look = Callable[[Installation], Awaitable[Finding | Sequence[Finding]]]


def broken_checks(home: Path, storage: StorageSettings | None, error: str) -> Iterator[HealthCheck]:
    """Yield the checks that work although the settings were rejected with ``error``."""

    async def tell() -> Finding:
        mend = "correct it in the environment, .env or footnote.toml; `footnote settings` lists all"
        return fail(error, mend, SETTINGS_PAGE)

    yield HealthCheck("settings", tell, SETTINGS_PAGE)
    yield from machine_checks(home, storage)


def all_checks(
    installation: Installation,
    *,
    embedding_key: str | None,
    map_mistakes: MapMistakes,
    map_locations: MapLocations,
) -> Iterator[HealthCheck]:
    """Yield every check of an installation with valid settings.

    Args:
        installation: installation to check.
        embedding_key: key of the embeddings endpoint, if any.
        map_mistakes: returns the mistakes in folders.toml.
        map_locations: returns the folders named there.
    """
    settings = installation.settings

    async def tell() -> Finding:
        return ok(f"taken; the home is {settings.home}")

    def look(name: str, examine: Look, page: str, seconds: float = CHECK_SECONDS) -> HealthCheck:
        return HealthCheck(name, partial(examine, installation), page, seconds)

    async def embedder(one: Installation) -> Finding:
        return await accounts.check_embedder(one, embedding_key)

    async def folders(one: Installation) -> Sequence[Finding]:
        return await contents.check_folders(one, map_mistakes, map_locations)

    async def clock(one: Installation) -> Finding:
        own = [one.public_url] if one.public_url and settings.bot.public_url else []
        return await addresses.check_clock(one, [*accounts.hosts_with_clocks(settings.bot), *own])

    yield HealthCheck("settings", tell, SETTINGS_PAGE)
    yield from machine_checks(settings.home, settings.storage)
    yield look("clock", clock, f"{PAGES}#the-clock-is-wrong")
    yield look("sql", engines.check_sql, f"{PAGES}#the-database-does-not-answer")
    yield look("blobs", engines.check_blobs, f"{PAGES}#the-blob-store-does-not-answer", LONG_SECONDS)
    yield look("index", engines.check_index, f"{PAGES}#the-index-does-not-answer", LONG_SECONDS)
    yield look(
        "contents", contents.check_contents, f"{PAGES}#documents-are-missing-from-the-index", LONG_SECONDS
    )
    yield look("sizes", contents.check_sizes, f"{PAGES}#a-channel-has-outgrown-the-embedded-index")
    yield look("folders", folders, f"{PAGES}#a-folder-is-not-read")
    yield look("embedder", embedder, f"{PAGES}#embeddings-do-not-work", LONG_SECONDS)
    yield look("model", accounts.check_models, f"{PAGES}#the-model-does-not-answer", LONG_SECONDS + 1)
    yield look("serve", addresses.check_serve, f"{PAGES}#serve-is-not-running")
    yield look("public-url", addresses.check_public_url, f"{PAGES}#links-do-not-open")
    yield look("tls", addresses.check_certificate, f"{PAGES}#the-certificate-ends-soon")
    yield look("sign-in", accounts.check_sign_in, f"{PAGES}#nobody-can-sign-in")
    yield look("slack", accounts.check_slack, f"{PAGES}#slack-refuses-the-token", LONG_SECONDS)
    yield look("teams", accounts.check_teams, f"{PAGES}#teams-gives-no-token")
