"""Settings in force: their source, their risk, and no secret among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.operations.doctor.redaction import known_redactor
from bot.operations.effective_settings import effective_settings
from bot.settings import BotSettings
from bot.web.admin.settings_page import EffectiveSetting
from storage.settings import StorageSettings, load


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, EffectiveSetting]:
    """Return settings from an environment, a .env file, footnote.toml and an argument."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOOTNOTE_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-secret-of-this-test")
    monkeypatch.setenv("DATABASE_URL", "postgresql://ada:lovelace@db/footnote")
    (tmp_path / ".env").write_text("FOOTNOTE_UPLOADS=all\nOPENAI_BASE_URL=http://models.example/v1\n")
    (tmp_path / "footnote.toml").write_text("FOOTNOTE_LINK_DAYS = 90\n")
    known_redactor.cache_clear()
    rooms = (load(StorageSettings), load(BotSettings, port=9000))
    return {one.variable: one for one in effective_settings(rooms)}


def test_each_setting_names_its_source(found: dict[str, EffectiveSetting]) -> None:
    """Environment, .env, footnote.toml, an argument, and defaults."""
    values = {name: (found[name].value, found[name].source) for name in SOURCES}
    assert values == SOURCES


SOURCES = {
    "OPENAI_API_KEY": ("set", "environment"),
    "DATABASE_URL": ("set", "environment"),
    "FOOTNOTE_UPLOADS": ("all", ".env"),
    "FOOTNOTE_LINK_DAYS": ("90.0", "footnote.toml"),
    "FOOTNOTE_PORT": ("9000", "command line"),
    "FOOTNOTE_HOST": ("127.0.0.1", "default"),
    "SLACK_BOT_TOKEN": ("", "default"),
}


def test_risky_values_say_why(found: dict[str, EffectiveSetting]) -> None:
    """Uploads by everybody, links for months, and an unencrypted address; a safe value says nothing."""
    risky = {name for name, one in found.items() if one.risk}
    assert {"FOOTNOTE_UPLOADS", "FOOTNOTE_LINK_DAYS", "OPENAI_BASE_URL"} <= risky
    assert not risky & {"FOOTNOTE_HOST", "FOOTNOTE_RECORD_DAYS", "FOOTNOTE_VERIFY"}


def test_no_secret_is_shown(found: dict[str, EffectiveSetting]) -> None:
    """Neither keys nor passwords in addresses."""
    shown = " ".join(f"{one.value} {one.risk}" for one in found.values())
    assert "secret-of-this-test" not in shown
    assert "lovelace" not in shown
