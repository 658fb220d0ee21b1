"""``footnote settings`` and ``footnote manifest``: files to start an installation from."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from bot.platforms.registry import PLATFORMS
from bot.settings import BotSettings
from bot.sign_in_settings import SignInSettings
from ingestion.settings import IngestionSettings
from ingestion.sources.shares.settings import ShareSettings
from storage.settings import FootnoteSettings, StorageSettings, bounds

HEAD = """\
# Every setting with its default. Copy the lines you change to `.env` where you start Footnote, or give
# them as environment variables; `footnote.toml` in the home takes the same names. The environment wins
# over `.env`, and `.env` over `footnote.toml`. A FOOTNOTE_ name that is not listed here is refused.
"""


async def print_settings(_: argparse.Namespace) -> int:
    """Print every setting with its default, as a template for .env."""
    print(render_settings(), end="")
    return 0


async def print_manifest(options: argparse.Namespace) -> int:
    """Print a chat platform's app manifest, to be pasted into a new app."""
    platform = next(one for one in PLATFORMS if one.name == options.platform)
    print(platform.manifest(options.url), end="")
    return 0


def render_settings() -> str:
    """Return all settings as commented lines, each with its description, range and default."""
    rooms = (StorageSettings, IngestionSettings, ShareSettings, BotSettings, SignInSettings)
    return "\n".join([HEAD, *(line for room in rooms for line in _room_lines(room))])


def _room_lines(room: type[FootnoteSettings]) -> Iterator[str]:
    yield f"# ---- {(room.__doc__ or '').strip().splitlines()[0]}\n"
    for variable, name in room.variables().items():
        field = room.model_fields[name]
        yield f"# {described(field)}\n#{variable}={shown_default(field.default)}\n"


def described(field: FieldInfo) -> str:
    """Return a setting's description with its range."""
    return f"{field.description} ({allowed})" if (allowed := bounds(field)) else str(field.description)


def shown_default(default: object) -> str:
    """Return a default as it is written in .env, '' if there is none."""
    if default is None or default is PydanticUndefined or isinstance(default, SecretStr):
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)
