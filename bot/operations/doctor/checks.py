"""All checks of an installation, in the order of the report."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bot.health.findings import CHECK_SECONDS, Finding, HealthCheck, fail, ok, warn
from bot.health.installation import Installation
from bot.operations.doctor import consistency, engines, reachability, services
from bot.operations.doctor.consistency import MapLocations, MapMistakes
from bot.operations.doctor.machine import machine_checks
from bot.platforms.registry import PLATFORMS
from storage.errors import docs_url
from storage.settings import OPENAI, StorageSettings

# Timeout of checks that load a model or list whole channels.
LONG_SECONDS = 15.0

TROUBLESHOOTING = docs_url("troubleshooting.md")
SETTINGS_PAGE = f"{TROUBLESHOOTING}#a-setting-is-refused"
Look = Callable[[Installation], Awaitable[Finding | Sequence[Finding]]]


@dataclass(frozen=True, slots=True)
class SettingsReport:
    """Faults of the settings, a sentence each."""

    faults: Sequence[str]
    # Variables that resemble a setting.
    doubts: Sequence[str]


def broken_checks(
    home: Path, storage: StorageSettings | None, report: SettingsReport
) -> Iterator[HealthCheck]:
    """Yield the checks that work although there are no valid settings."""
    yield _settings_check(home, report)
    yield from machine_checks(home, storage)


def _settings_check(home: Path, report: SettingsReport) -> HealthCheck:
    async def tell() -> list[Finding]:
        fix = "correct it in the environment, .env or footnote.toml; `footnote settings` lists all"
        found = [fail(fault, fix, SETTINGS_PAGE) for fault in report.faults]
        found += [
            warn(doubt, "rename it if it is meant for Footnote", SETTINGS_PAGE) for doubt in report.doubts
        ]
        return found or [ok(f"valid; the home is {home}")]

    return HealthCheck("settings", tell, SETTINGS_PAGE)


def all_checks(
    installation: Installation,
    *,
    report: SettingsReport,
    embedding_key: str | None,
    map_mistakes: MapMistakes,
    map_locations: MapLocations,
) -> Iterator[HealthCheck]:
    """Yield every check of an installation.

    Args:
        report: what is wrong with its settings; rejected ones count as unset.
        embedding_key: key of the embeddings endpoint, if any.
    """
    settings = installation.settings

    async def embedder(one: Installation) -> Finding:
        return await services.check_embedder(one, embedding_key)

    async def folders(one: Installation) -> Sequence[Finding]:
        return await consistency.check_folders(one, map_mistakes, map_locations)

    async def clock(one: Installation) -> Finding:
        model = (settings.bot.openai_base_url or OPENAI) if settings.bot.has_model else None
        own = one.public_url if settings.bot.public_url else None
        urls = [*(platform.clock_url(settings.bot) for platform in PLATFORMS), model, own]
        return await reachability.check_clock(one, [url for url in urls if url])

    yield _settings_check(settings.home, report)
    yield from machine_checks(settings.home, settings.storage)
    # Name, check, section of the troubleshooting page, timeout.
    table: Sequence[tuple[str, Look, str, float]] = (
        ("clock", clock, "the-clock-is-wrong", CHECK_SECONDS),
        ("sql", engines.check_sql, "the-database-does-not-answer", CHECK_SECONDS),
        ("blobs", engines.check_blobs, "the-blob-store-does-not-answer", LONG_SECONDS),
        ("index", engines.check_index, "the-index-does-not-answer", LONG_SECONDS),
        ("contents", consistency.check_contents, "documents-are-missing-from-the-index", LONG_SECONDS),
        ("sizes", consistency.check_sizes, "a-channel-has-outgrown-the-embedded-index", CHECK_SECONDS),
        ("backup", consistency.check_backup, "there-is-no-recent-backup", CHECK_SECONDS),
        ("folders", folders, "a-folder-is-not-read", CHECK_SECONDS),
        ("embedder", embedder, "embeddings-do-not-work", LONG_SECONDS),
        ("model", services.check_models, "the-model-does-not-answer", LONG_SECONDS + 1),
        ("serve", reachability.check_serve, "serve-is-not-running", CHECK_SECONDS),
        ("public-url", reachability.check_public_url, "links-do-not-open", CHECK_SECONDS),
        ("tls", reachability.check_certificate, "the-certificate-ends-soon", CHECK_SECONDS),
        ("sign-in", services.check_sign_in, "nobody-can-sign-in", CHECK_SECONDS),
    )
    for name, examine, section, seconds in table:
        yield HealthCheck(name, partial(examine, installation), f"{TROUBLESHOOTING}#{section}", seconds)
    for platform in PLATFORMS:
        yield platform.health_check(installation)
