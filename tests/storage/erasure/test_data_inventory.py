"""Data inventory: every table and home entry states owner and retention, and docs/erasure.md lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sources import ROOT, modules

from bot.settings import BotSettings
from ingestion.settings import IngestionSettings
from storage.config_file import MAP_NAME
from storage.erasure.data_inventory import HOME_ENTRIES, TABLES, InventoryEntry
from storage.settings import StorageSettings
from storage.sql.tables import SQLModel

PAGE = ROOT / "docs" / "erasure.md"
# Paths that the code creates in a home, as a literal or a constant.
IN_HOME = re.compile(r'\b_?home(?:_path|\.absolute\(\))? / (?:"([^"]+)"|([A-Z_]+)\b)')
PRESETS = {
    variable: room.model_fields[field].default
    for room in (StorageSettings, IngestionSettings, BotSettings)
    for variable, field in room.variables().items()
}


def rows(kept: Mapping[str, InventoryEntry]) -> Iterator[str]:
    """Yield the rows of the page's table."""
    for name, one in sorted(kept.items()):
        preset = f"`{one.setting}` ({PRESETS[one.setting]:g})" if one.setting else ""
        until = ", ".join(filter(None, (preset, one.retention)))
        yield f"| `{name}` | {one.holds} | {', '.join(one.owners) or '-'} | {until} |"


def test_every_table_is_in_the_inventory() -> None:
    assert SQLModel.metadata.tables.keys() | {"alembic_version"} == TABLES.keys()


def test_every_home_entry_is_in_the_inventory() -> None:
    """Shows the same for files and folders that the code names next to `home`."""
    text = "\n".join(module.text for module in modules())
    constants = dict(re.findall(r'^([A-Z_]+) = "([^"]+)"$', text, re.MULTILINE))
    made = {name or constants[constant] for name, constant in IN_HOME.findall(text)}
    assert {MAP_NAME, "footnote.db", "blobs", "index", "weaviate", "serve.json"} <= made
    assert made - {name.removesuffix("*") for name in HOME_ENTRIES} == set()


def test_the_page_matches_the_inventory() -> None:
    """Shows that docs/erasure.md has exactly these rows, with the default retention settings."""
    printed = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert printed == [*rows(TABLES), *rows(HOME_ENTRIES)]


def test_every_entry_with_an_owner_has_a_retention() -> None:
    nameless = [name for name, one in (TABLES | HOME_ENTRIES).items() if not (one.setting or one.retention)]
    assert nameless == []
