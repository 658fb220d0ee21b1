"""The chat platforms' manifests: they ask for what the code needs, and no more events than it reads."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from sources import ROOT

from bot.slack.private_questions import SHORTCUT
from bot.slack.surfaces.agent_view import prompts


@pytest.fixture
def slack() -> Any:
    """Slack's manifest, as it is pasted into a new app."""
    return json.loads((ROOT / "deploy" / "slack-manifest.json").read_text(encoding="utf-8"))


@pytest.fixture
def teams() -> Any:
    """The template of Teams' manifest."""
    return json.loads((ROOT / "deploy" / "teams" / "manifest.json").read_text(encoding="utf-8"))


def test_slack_sends_what_asks_us_over_a_socket(slack: Any) -> None:
    """Shows that questions reach us without a public URL, and that the buttons' clicks do too."""
    settings = slack["settings"]
    assert settings["socket_mode_enabled"] is True
    assert settings["interactivity"]["is_enabled"] is True
    assert settings["event_subscriptions"]["bot_events"] == [
        "app_home_opened",
        "app_mention",
        "channel_deleted",
        "channel_left",
        "group_deleted",
        "group_left",
        "link_shared",
        "member_joined_channel",
        "message.channels",
        "message.groups",
        "message.im",
    ]


@pytest.mark.parametrize(
    ("scope", "use"),
    [
        ("app_mentions:read", "the event app_mention"),
        ("assistant:write", "assistant.threads.setSuggestedPrompts of a direct conversation"),
        ("links:read", "the event link_shared"),
        ("links:write", "chat.unfurl"),
        ("im:history", "the event message.im, and finding a placeholder in a direct conversation"),
        ("chat:write", "posting the placeholder and writing the answer over it"),
        ("commands", "the slash command and the shortcut"),
        ("files:write", "uploading the pictures of figures"),
        ("channels:history", "the event message.channels, and finding a placeholder in a channel"),
        ("channels:read", "member_joined_channel, and conversations.info and users.conversations"),
        ("groups:read", "the same of a private channel"),
        ("groups:history", "the event message.groups, and finding a placeholder in a private channel"),
    ],
)
def test_slack_grants_what_the_code_calls(slack: Any, scope: str, use: str) -> None:
    """Shows that no event and no call of ours is refused for want of a scope."""
    assert scope in slack["oauth_config"]["scopes"]["bot"], f"needed for {use}"


def test_slack_has_the_slash_command_that_the_pages_name(slack: Any) -> None:
    """Shows it without a URL: over a socket none is needed, and over HTTP it is the installation's own."""
    (command,) = slack["features"]["slash_commands"]
    assert command["command"] == "/footnote"
    assert "url" not in command
    (shortcut,) = slack["features"]["shortcuts"]
    assert (shortcut["type"], shortcut["callback_id"]) == ("message", SHORTCUT)
    assert max(len(shortcut["name"]), len(shortcut["description"])) <= 150


def test_people_can_write_to_the_bot_in_slack(slack: Any) -> None:
    """Shows that a direct conversation has a field to type into."""
    home = slack["features"]["app_home"]
    assert (home["messages_tab_enabled"], home["messages_tab_read_only_enabled"]) == (True, False)
    assert home["home_tab_enabled"]


def test_slack_is_told_no_host_of_ours(slack: Any) -> None:
    """Shows that whoever wants previews of links names the installation's own host."""
    assert "unfurl_domains" not in slack["features"]


def test_slack_shows_a_direct_conversation_as_an_agents(slack: Any) -> None:
    """Shows that what stands there before anybody opened it is one of the prompts that we set, too."""
    view = slack["features"]["agent_view"]
    assert view["agent_description"]
    assert view["suggested_prompts"] == prompts([])


def test_the_teams_template_belongs_to_nobody(teams: Any) -> None:
    """Shows that each value which the package script fills in is a placeholder until then."""
    (bot,) = teams["bots"]
    assert {UUID(teams["id"]), UUID(bot["botId"])} == {UUID(int=0)}
    pages = ("websiteUrl", "privacyUrl", "termsOfUseUrl")
    assert {urlsplit(teams["developer"][page]).netloc for page in pages} == {"footnote.example"}
    assert teams["validDomains"] == []


def test_teams_lets_the_bot_into_every_kind_of_conversation(teams: Any) -> None:
    """Shows that channels, group chats and personal chats can all hold it."""
    assert set(teams["bots"][0]["scopes"]) == {"personal", "team", "groupChat"}
