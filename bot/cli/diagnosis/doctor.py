"""``footnote doctor``: checks everything an installation needs, concurrently, and suggests fixes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial

from bot.bootstrap import embedding_key
from bot.cli.json_output import dump
from bot.diagnostics.checks import all_checks, broken_checks
from bot.diagnostics.installation import open_installation
from bot.diagnostics.models import CheckResult, HealthCheck
from bot.diagnostics.redaction import Redactor, secrets_of
from bot.diagnostics.report import as_text, has_failed, run_checks
from bot.settings import SETTINGS_CLASSES, load_settings
from ingestion.folder_map.folder_map import check_map, map_locations
from storage.config_file import MAP_NAME
from storage.errors import SettingsError
from storage.settings import StorageSettings, load, resolve_home


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
    try:
        settings = load_settings()
    except (SettingsError, OSError) as error:
        broken = [*broken_checks(resolve_home(), _storage_settings(), str(error))]
        return await run_checks(
            [one for one in broken if not only or one.name in {"settings", *only}], redactor
        )
    async with open_installation(settings) as installation:
        folder_map = settings.home / MAP_NAME
        checks = all_checks(
            installation,
            embedding_key=embedding_key(settings),
            map_mistakes=partial(check_map, folder_map, settings.inbox),
            map_locations=partial(map_locations, folder_map, settings.inbox),
        )
        return await run_checks(_chosen([*checks], only), redactor)


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
