"""Event subscriptions, OAuth scopes and the generated app manifest.

The adapter handles only events listed in ``EVENTS`` and ignores others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from bot.platforms.slack.private_questions import SHORTCUT
from bot.platforms.slack.surfaces.agent_view import prompts
from storage.errors import SettingsError

Json = dict[str, Any]

# Request URL of events, interactions and slash commands.
PATH = "/slack/events"
# Event subscription -> scopes that Slack requires for it.
EVENTS: Mapping[str, tuple[str, ...]] = {
    "agent_session_stopped": ("chat:write",),
    "app_home_opened": (),
    "app_mention": ("app_mentions:read",),
    "app_uninstalled": (),
    "channel_deleted": ("channels:read",),
    "channel_id_changed": ("channels:read", "groups:read"),
    "channel_left": ("channels:read",),
    "group_deleted": ("groups:read",),
    "group_left": ("groups:read",),
    "link_shared": ("links:read",),
    "member_joined_channel": ("channels:read", "groups:read"),
    "message.channels": ("channels:history",),
    "message.groups": ("groups:history",),
    "message.im": ("im:history",),
    "tokens_revoked": (),
}
EVENT_TYPES = frozenset(name.partition(".")[0] for name in EVENTS)
_HISTORY = ("channels:history", "groups:history", "im:history")
# Web API method that we call -> scopes that Slack requires for it.
METHODS: Mapping[str, tuple[str, ...]] = {
    "agents.sessions.rename": ("chat:write",),
    "agents.sessions.setStatus": ("chat:write",),
    "assistant.threads.setSuggestedPrompts": ("assistant:write",),
    "auth.test": (),
    "chat.appendStream": ("chat:write",),
    "chat.delete": ("chat:write",),
    "chat.postEphemeral": ("chat:write",),
    "chat.postMessage": ("chat:write",),
    "chat.startStream": ("chat:write",),
    "chat.stopStream": ("chat:write",),
    "chat.unfurl": ("links:write",),
    "chat.update": ("chat:write",),
    "conversations.history": _HISTORY,
    "conversations.info": ("channels:read", "groups:read"),
    "conversations.replies": _HISTORY,
    "files.completeUploadExternal": ("files:write",),
    "files.delete": ("files:write",),
    "files.getUploadURLExternal": ("files:write",),
    "files.info": ("files:read",),
    "users.conversations": ("channels:read", "groups:read"),
    "views.publish": (),
}
# Bot scopes requested at installation.
SCOPES = tuple(
    sorted({"commands", *(scope for needed in (*EVENTS.values(), *METHODS.values()) for scope in needed)})
)


def manifest(public_url: str = "") -> Json:
    """Return the app manifest.

    Args:
        public_url: base URL of this server, for events over HTTP and link unfurling; '' for Socket Mode.
    """
    request = {"request_url": f"{public_url.rstrip('/')}{PATH}"} if public_url else {}
    return {
        "_metadata": {"major_version": 2, "minor_version": 1},
        "display_information": {
            "name": "Footnote",
            "description": "Answers from this channel's PDFs, each with a link to the marked page.",
            "background_color": "#1f2937",
        },
        "features": _features(request.get("request_url", "")),
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "event_subscriptions": {**request, "bot_events": sorted(EVENTS)},
            "interactivity": {"is_enabled": True, **request},
            "org_deploy_enabled": False,
            "socket_mode_enabled": not public_url,
            "token_rotation_enabled": False,
        },
    }


def _features(request_url: str) -> Json:
    """Return the manifest's ``features``: App Home, bot user, shortcut, slash command, agent view."""
    command: Json = {
        "command": "/footnote",
        "description": "Ask privately, list the documents, or get help",
        "usage_hint": "[question | documents | help]",
        "should_escape": False,
    }
    return {
        "app_home": {
            "home_tab_enabled": True,
            "messages_tab_enabled": True,
            "messages_tab_read_only_enabled": False,
        },
        "bot_user": {"display_name": "Footnote", "always_online": True},
        "shortcuts": [
            {
                "name": "Ask about this",
                "type": "message",
                "callback_id": SHORTCUT,
                "description": "See what this channel's documents say about a message",
            }
        ],
        "slash_commands": [command | ({"url": request_url} if request_url else {})],
        **({"unfurl_domains": [urlsplit(request_url).hostname]} if request_url else {}),
        "agent_view": {
            "agent_description": (
                "Answers questions from the PDFs in a channel and shows the page behind every answer."
            ),
            "suggested_prompts": prompts([]),
        },
    }


def render_manifest(public_url: str = "") -> str:
    """Return the manifest as JSON: for Socket Mode, or for events over HTTP to a public URL.

    Raises:
        SettingsError: the URL is not https.
    """
    address = urlsplit(public_url)
    if public_url and (address.scheme != "https" or not address.hostname):
        raise SettingsError(f"Slack calls https://your.host only, not {public_url}")
    return json.dumps(manifest(public_url), indent=2, ensure_ascii=False) + "\n"
