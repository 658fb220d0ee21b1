"""Escaping of external names and subjects: they cannot move the cursor, hide a line or ring the bell."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from harness.empty_homes import make_sqlite
from harness.forks import run_command

from bot.terminal import escape
from storage.chat.channels import Channels
from storage.models import ChannelKey, Platform
from storage.sql.audit import AuditedAction, AuditLog
from storage.sql.database import Database

EVIL = "a\x1b[2K\x07\x9b1A\u202eb\x85\n2026-01-01 00:00  local:console  erase"
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home with a channel and an audited action of that name."""

    async def fill() -> None:
        database = await Database.open(make_sqlite(tmp_path / "home"))
        await Channels(database).ensure(ChannelKey(Platform("slack"), "T1", "C1"), name=EVIL)
        await AuditLog(database).record(AuditedAction(EVIL, "sign in", EVIL, EVIL))
        await database.aclose()

    asyncio.run(fill())
    return tmp_path / "home"


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["rows", "json"])
@pytest.mark.parametrize("command", ["channels", "audit"])
def test_external_text_is_escaped(home: Path, command: str, more: list[str]) -> None:
    """Each control character is escaped; JSON preserves the value."""
    done = run_command([command, *more], {"FOOTNOTE_HOME": str(home)})
    assert done.returncode == 0, done.stderr
    assert CONTROLS.findall(done.stdout + done.stderr) == []
    (line,) = [one for one in done.stdout.splitlines() if "\\u001b[2K" in one]
    if more:
        assert EVIL in json.loads(line).values()
    else:
        assert "a\\u001b[2K\\u0007\\u009b1A\\u202eb\\u0085\\u000a2026" in line
    assert not [one for one in done.stdout.splitlines() if one.startswith("2026-01-01")]


def test_other_characters_are_not_escaped() -> None:
    """Tabs, line feeds, other scripts and emoji joiners."""
    text = "\tzwei\nZeilen, \u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \U0001f469\u200d\U0001f4bb"
    assert escape(text) == text
