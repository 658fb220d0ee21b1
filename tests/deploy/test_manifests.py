"""App manifests of Slack and Teams: exactly the scopes and events that the code uses."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from engines.support.slack_judges import schema_faults
from slack_sdk.web.async_client import AsyncWebClient
from sources import ROOT

from bot.platforms.slack.private_questions import SHORTCUT
from bot.platforms.slack.surfaces.agent_view import prompts
from bot.platforms.slack.workspace.app_manifest import METHODS, PATH, manifest, render_manifest
from storage.errors import SettingsError


@pytest.fixture
def slack() -> Any:
    """Return Slack's manifest, as pasted into a new app."""
    return json.loads((ROOT / "deploy" / "slack-manifest.json").read_text(encoding="utf-8"))


@pytest.fixture
def teams() -> Any:
    """Return the template of Teams' manifest."""
    return json.loads((ROOT / "deploy" / "teams" / "manifest.json").read_text(encoding="utf-8"))


def test_slack_sends_all_needed_events_over_a_socket(slack: Any) -> None:
    """Shows that questions and button clicks arrive without a public URL."""
    settings = slack["settings"]
    assert settings["socket_mode_enabled"] is True
    assert settings["interactivity"]["is_enabled"] is True
    assert settings["event_subscriptions"]["bot_events"] == [
        "agent_session_stopped",
        "app_home_opened",
        "app_mention",
        "app_uninstalled",
        "channel_deleted",
        "channel_id_changed",
        "channel_left",
        "group_deleted",
        "group_left",
        "link_shared",
        "member_joined_channel",
        "message.channels",
        "message.groups",
        "message.im",
        "tokens_revoked",
    ]


def test_the_slack_manifest_is_generated_by_the_code(slack: Any) -> None:
    """Shows that it was not edited by hand and is up to date; `make format` regenerates it."""
    assert json.dumps(slack, indent=2, ensure_ascii=False) + "\n" == render_manifest()


def test_slack_scopes_match_the_api_methods_in_use() -> None:
    """Shows that each API method in the code has its scopes listed, and that none is unused."""
    called = set()
    for path in (ROOT / "bot" / "platforms" / "slack").rglob("*.py"):
        names = re.findall(r"\b_?client\.(\w+)", path.read_text(encoding="utf-8"))
        called |= {name for name in names if callable(getattr(AsyncWebClient, name, None))}
    assert "chat_postMessage" in called
    called -= {"files_upload_v2", "apps_connections_open"}  # the latter by doctor, with the app token
    uploads = {"files.getUploadURLExternal", "files.completeUploadExternal"}
    assert {name.replace("_", ".") for name in called} | uploads == set(METHODS)


@pytest.mark.engine("slack")
@pytest.mark.parametrize("public_url", ["", "https://your.host"])
def test_the_slack_manifest_satisfies_slacks_types(public_url: str) -> None:
    """Every key, event and scope is known to Slack; an unknown one of each is refused.

    Slack's types lack the scope for ``agent_view`` and the event for stopping it.
    """
    made = manifest(public_url)
    made["oauth_config"]["scopes"]["bot"].remove("assistant:write")
    made["settings"]["event_subscriptions"]["bot_events"].remove("agent_session_stopped")
    assert schema_faults("apps.manifest.validate", {"manifest": made}) == []
    settings, oauth = made["settings"], made["oauth_config"]
    for fault in (
        {"features": made["features"] | {"app_house": {}}},
        {"settings": settings | {"event_subscriptions": {"bot_events": ["message.channel"]}}},
        {"settings": settings | {"interactivity": {}}},
        {"oauth_config": oauth | {"scopes": {"bot": ["chat:read"]}}},
        {"features": made["features"] | {"shortcuts": [{"name": "Ask", "type": "message"}]}},
    ):
        assert schema_faults("apps.manifest.validate", {"manifest": made | fault}), fault


def test_the_slack_manifest_is_within_slacks_limits() -> None:
    """Shows lengths and counts that Slack documents but its types do not check."""
    made = manifest("https://your.host")
    features, words = made["features"], made["display_information"]
    view = features["agent_view"]
    assert made.keys() == {"_metadata", "display_information", "features", "oauth_config", "settings"}
    assert len(words["name"]) <= 35
    assert len(words["description"]) <= 140
    assert len(view["agent_description"]) <= 300
    assert len(view["suggested_prompts"]) <= 4
    assert len(features["unfurl_domains"]) <= 5
    assert all(len(one["command"]) <= 32 and one["command"][0] == "/" for one in features["slash_commands"])
    assert all(max(len(one["callback_id"]), len(one["name"])) <= 150 for one in features["shortcuts"])


def test_over_http_everything_goes_to_the_events_url() -> None:
    """Events, clicks and the command; links to its host get previews, and Socket Mode is off."""
    made = json.loads(render_manifest("https://your.host/"))
    assert made == manifest("https://your.host")
    settings, features = made["settings"], made["features"]
    (command,) = features["slash_commands"]
    addresses = {
        settings["event_subscriptions"]["request_url"],
        settings["interactivity"]["request_url"],
        command["url"],
    }
    assert addresses == {f"https://your.host{PATH}"}
    assert features["unfurl_domains"] == ["your.host"]
    assert settings["socket_mode_enabled"] is False


@pytest.mark.parametrize("url", ["http://your.host", "your.host"])
def test_a_url_that_slack_cannot_call_is_refused(url: str) -> None:
    """Shows that only https URLs are accepted."""
    with pytest.raises(SettingsError, match=r"https://your\.host only"):
        render_manifest(url)


def test_slack_has_the_documented_slash_command(slack: Any) -> None:
    """The command has no URL: Socket Mode needs none, and over HTTP it is the installation's own."""
    (command,) = slack["features"]["slash_commands"]
    assert command["command"] == "/footnote"
    assert "url" not in command
    (shortcut,) = slack["features"]["shortcuts"]
    assert (shortcut["type"], shortcut["callback_id"]) == ("message", SHORTCUT)
    assert max(len(shortcut["name"]), len(shortcut["description"])) <= 150


def test_people_can_write_to_the_bot_in_slack(slack: Any) -> None:
    """Shows that the messages tab has an input field."""
    home = slack["features"]["app_home"]
    assert (home["messages_tab_enabled"], home["messages_tab_read_only_enabled"]) == (True, False)
    assert home["home_tab_enabled"]


def test_the_slack_manifest_names_no_host(slack: Any) -> None:
    """Shows that link previews are enabled by naming the installation's own host."""
    assert "unfurl_domains" not in slack["features"]


def test_slack_shows_direct_messages_as_an_agent_view(slack: Any) -> None:
    """Shows that the initial prompts are among those that we set."""
    view = slack["features"]["agent_view"]
    assert view["agent_description"]
    assert view["suggested_prompts"] == prompts([])


def test_the_teams_template_contains_only_placeholders(teams: Any) -> None:
    """Shows that each value filled in by the package script is a placeholder."""
    (bot,) = teams["bots"]
    assert {UUID(teams["id"]), UUID(bot["botId"])} == {UUID(int=0)}
    pages = ("websiteUrl", "privacyUrl", "termsOfUseUrl")
    assert {urlsplit(teams["developer"][page]).netloc for page in pages} == {"footnote.example"}
    assert teams["validDomains"] == []


def test_teams_allows_the_bot_in_every_kind_of_conversation(teams: Any) -> None:
    """Shows that channels, group chats and personal chats can all add it."""
    assert set(teams["bots"][0]["scopes"]) == {"personal", "team", "groupChat"}
