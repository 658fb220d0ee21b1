"""``footnote doctor``: checks everything an installation needs, concurrently, and suggests fixes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial

from bot.bootstrap import embedding_key
from bot.cli.json_output import dump
from bot.health.findings import CheckResult, HealthCheck
from bot.health.installation import open_installation
from bot.operations.doctor.checks import SettingsReport, all_checks, broken_checks
from bot.operations.doctor.redaction import Redactor, secrets_of
from bot.operations.doctor.report import as_text, has_failed, run_checks
from bot.settings import SETTINGS_CLASSES, Settings, examine_settings
from ingestion.folder_map.folder_map import check_map, map_locations
from ingestion.sources.shares.settings import ShareSettings
from storage.config_file import MAP_NAME
from storage.errors import SettingsError
from storage.settings import StorageSettings, load, load_valid, misspelt_variables, resolve_home


async def doctor(options: argparse.Namespace) -> int:
    """Print a line for every finding; return 1 if something does not work. Nothing is changed.

    Raises:
        SettingsError: an unknown check was named.
    """
    results = await examine_installation(options.checks)
    for result in results:
        print(dump(asdict(result)) if options.json else as_text(result))
    return 1 if has_failed(results) else 0


async def examine_installation(only: Sequence[str] = ()) -> Sequence[CheckResult]:
    """Run all checks, or those named, on the installation that the environment describes.

    Raises:
        SettingsError: an unknown check was named.
    """
    redactor = Redactor(secrets_of(SETTINGS_CLASSES))
    settings, report = _examine_settings()
    if settings is None:
        broken = [*broken_checks(resolve_home(), _storage_settings(), report)]
        return await run_checks(
            [one for one in broken if not only or one.name in {"settings", *only}], redactor
        )
    async with open_installation(settings) as installation:
        folder_map = settings.home / MAP_NAME
        checks = all_checks(
            installation,
            report=report,
            embedding_key=embedding_key(settings),
            map_mistakes=partial(check_map, folder_map, settings.inbox),
            map_locations=partial(map_locations, folder_map, settings.inbox),
        )
        shown = [*only, *(["settings"] if only and report.faults else [])]
        return await run_checks(_chosen([*checks], shown), redactor)


def _examine_settings() -> tuple[Settings | None, SettingsReport]:
    """Return settings that can be checked, if any, and what is wrong with them."""
    try:
        settings, faults = examine_settings()
        _, share_faults = load_valid(ShareSettings)
        return settings, SettingsReport([*faults, *share_faults], misspelt_variables(SETTINGS_CLASSES))
    except (SettingsError, OSError) as error:
        return None, SettingsReport([str(error)], [])


def _chosen(checks: Sequence[HealthCheck], only: Sequence[str]) -> list[HealthCheck]:
    names = [one.name for one in checks]
    if unknown := [name for name in only if name not in names]:
        raise SettingsError(f"there is no check {', '.join(unknown)}; the checks are {', '.join(names)}")
    return [one for one in checks if not only or one.name in only]


def _storage_settings() -> StorageSettings | None:
    """Return the storage settings if only other settings are invalid, else None."""
    with suppress(SettingsError, OSError):
        return load(StorageSettings)
    return None
