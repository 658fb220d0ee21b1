"""The startup_banner of ``serve``: names the engines in use, and no secret."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.app import startup_banner
from bot.platforms.registry import loopback_links_warning
from bot.settings import BotSettings, Settings
from ingestion.settings import IngestionSettings
from storage.settings import StorageSettings

URL = "http://127.0.0.1:8765"


def settings(home: Path, **storage: object) -> Settings:
    """Return a home's settings."""
    return Settings(
        StorageSettings.model_validate({"home": home, **storage}), BotSettings(), IngestionSettings()
    )


def test_a_default_home_names_its_embedded_engines(tmp_path: Path) -> None:
    """Shows that only engines in use are named."""
    ask, drop, engines = startup_banner(settings(tmp_path), URL, [])
    assert ask.endswith(URL)
    assert drop.endswith(f"{tmp_path}/inbox/<channel>/")
    assert engines.endswith(
        "index: embedded (SQLite FTS5 and numpy); SQL: SQLite; answers: quotes (no model key)"
    )


def test_the_only_folder_of_the_inbox_is_named(tmp_path: Path) -> None:
    """Shows that with one channel the path can be copied unchanged."""
    (tmp_path / "inbox" / "handbook").mkdir(parents=True)
    assert startup_banner(settings(tmp_path), URL, ["Slack"])[1].endswith(f"{tmp_path}/inbox/handbook/")


def test_engines_on_servers_are_named_without_their_passwords(tmp_path: Path) -> None:
    """Shows that PostgreSQL and an embedding endpoint are named without their credentials."""
    chosen = settings(
        tmp_path,
        database_url=SecretStr("postgresql://footnote:cast-iron@db/footnote"),
        embed_model="text-embedding-3-small",
        weaviate_url="embedded",
    )
    engines = startup_banner(chosen, URL, [])[2]
    assert (
        "index: Weaviate (our child process); SQL: PostgreSQL; embeddings: text-embedding-3-small;" in engines
    )
    assert "cast-iron" not in engines


@pytest.mark.parametrize("public_url", ["http://127.0.0.1:8765", "http://localhost:8080", "http://[::1]:1"])
def test_chat_links_to_localhost_cause_a_warning(public_url: str) -> None:
    """Shows a warning for chat links to localhost, with the setting that fixes it."""
    warning = loopback_links_warning(BotSettings(slack_bot_token="xoxb-1", teams_app_id="1"), public_url)
    assert warning
    assert f"Slack and Teams lead to {public_url}" in warning
    assert "FOOTNOTE_PUBLIC_URL" in warning


def test_reachable_links_cause_no_warning() -> None:
    """No warning without a chat, with a public host, or for fake chat servers on this machine."""
    local = "http://127.0.0.1:8765"
    assert loopback_links_warning(BotSettings(), local) is None
    slack = BotSettings(slack_bot_token="xoxb-1")
    assert loopback_links_warning(slack, "https://footnote.example.com") is None
    on_loopback = slack.model_copy(update={"slack_api_url": "http://localhost:3000/api/"})
    assert loopback_links_warning(on_loopback, local) is None
    assert loopback_links_warning(BotSettings(teams_app_id="1", teams_development=True), local) is None
