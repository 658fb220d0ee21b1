"""Writes ``deploy/env.example`` from the settings themselves: ``make format`` runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from bot.settings import BotSettings
from bot.sign_in_settings import SignInSettings
from ingestion.settings import IngestionSettings
from ingestion.sources.shares.settings import ShareSettings
from storage.settings import FootnoteSettings, StorageSettings

HEAD = """\
# Every setting with its default. Copy the lines you change to `.env` where you start Footnote, or give
# them as environment variables; `footnote.toml` in the home takes the same names. The environment wins
# over `.env`, and `.env` over `footnote.toml`. A FOOTNOTE_ name that is not listed here is refused.
"""
SIGNS = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}


def render() -> str:
    """The whole file."""
    rooms = (StorageSettings, IngestionSettings, ShareSettings, BotSettings, SignInSettings)
    return "\n".join([HEAD, *(line for room in rooms for line in room_lines(room))])


def room_lines(room: type[FootnoteSettings]) -> Iterator[str]:
    """One room: its heading, then each setting."""
    yield f"# ---- {(room.__doc__ or '').strip().splitlines()[0]}\n"
    for variable, name in room.variables().items():
        field = room.model_fields[name]
        yield f"# {field.description}{bounds(field)}\n#{variable}={shown(field.default)}\n"


def bounds(field: FieldInfo) -> str:
    """The allowed range in words, empty when there is none."""
    words = [
        f"{word} {getattr(rule, sign)}"
        for rule in field.metadata
        for sign, word in SIGNS.items()
        if getattr(rule, sign, None) is not None
    ]
    return f" ({' '.join(words)})" if words else ""


def shown(default: object) -> str:
    """A default as it is written in the file."""
    if default is None or default is PydanticUndefined or isinstance(default, SecretStr):
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)


if __name__ == "__main__":
    Path(__file__).with_name("env.example").write_text(render(), encoding="utf-8")
