"""Verifies Slack's request signature and payload shape before Bolt sees them.

Unsigned bodies are never parsed, and malformed ones get a 4xx where Bolt would answer 500.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web

MAX_BODY_BYTES = 1 << 20
MAX_JSON_DEPTH = 40
# Seconds a signature is valid, as Slack documents it: limits replay attacks.
WINDOW = 300

# Fields of events and interactions that are objects; null counts as missing.
_OBJECTS = ("event", "team", "enterprise", "user", "channel", "message", "container", "view", "state")

_IDS = ("id", "team_id", "enterprise_id")


async def read_signed_body(request: web.Request, secret: str) -> str:
    """Return the body of a request whose signature and shape are valid.

    Raises:
        web.HTTPRequestEntityTooLarge: more than 1 MiB.
        web.HTTPUnauthorized: not signed, signed with another secret, or outside the time window.
        web.HTTPBadRequest: signed, but not UTF-8, not a JSON object, malformed or nested too deeply.
    """
    if (request.content_length or 0) > MAX_BODY_BYTES:
        raise web.HTTPRequestEntityTooLarge(MAX_BODY_BYTES, request.content_length or 0)
    body = await request.read()
    if len(body) > MAX_BODY_BYTES:
        raise web.HTTPRequestEntityTooLarge(MAX_BODY_BYTES, len(body))
    if not _is_signed(request, body, secret, time.time()):
        raise web.HTTPUnauthorized
    return _readable(body, request.content_type)


def _is_signed(request: web.Request, body: bytes, secret: str, now: float) -> bool:
    # Exactly one of each header: with duplicates, it is ambiguous which one was signed.
    stamps = request.headers.getall("X-Slack-Request-Timestamp", [])
    signatures = request.headers.getall("X-Slack-Signature", [])
    if len(stamps) != 1 or len(signatures) != 1 or not re.fullmatch(r"[0-9]{1,11}", stamps[0]):
        return False
    if abs(now - int(stamps[0])) > WINDOW:
        return False
    digest = hmac.new(secret.encode(), b"v0:%s:%s" % (stamps[0].encode(), body), hashlib.sha256)
    return hmac.compare_digest(b"v0=" + digest.hexdigest().encode(), signatures[0].encode(errors="replace"))


def _readable(body: bytes, content_type: str) -> str:
    try:
        text = body.decode()
        # Interactions are forms with their JSON in the field "payload".
        is_form = content_type == "application/x-www-form-urlencoded"
        fields = parse_qs(text, keep_blank_values=True) if is_form else {}
        payload = json.loads(fields.get("payload", ["{}"])[0] if is_form else text)
    except (ValueError, RecursionError):
        raise web.HTTPBadRequest from None
    if not isinstance(payload, dict) or _is_deeper(payload, MAX_JSON_DEPTH) or not _is_shaped(payload):
        raise web.HTTPBadRequest
    return text


def _is_shaped(payload: Mapping[str, Any]) -> bool:
    """True if the fields that listeners read have Slack's types or are missing."""
    if not (_are_objects(payload, _OBJECTS) and _are_lists(payload, ("authorizations", "actions"))):
        return False
    kind, event, actions = payload.get("type"), payload.get("event"), payload.get("actions") or []
    if (kind == "event_callback" and event is None) or (kind == "block_actions" and not actions):
        return False
    named = [payload.get(name) or {} for name in ("team", "enterprise", "user", "channel")]
    return (
        all(_are_texts(one, _IDS) for one in (*named, *(payload.get("authorizations") or ())))
        and all("action_id" in one and _are_texts(one, ("action_id", "block_id")) for one in actions)
        and (event is None or _are_texts(event, ("type", "user_team")))
        and (event is None or _are_objects(event, ("message", "previous_message", "tokens")))
        and (event is None or _are_lists(event, ("files", "links")))
    )


def _are_objects(value: Mapping[str, Any], names: Iterable[str]) -> bool:
    return all(value.get(name) is None or isinstance(value[name], dict) for name in names)


def _are_texts(value: Mapping[str, Any], names: Iterable[str]) -> bool:
    return all(value.get(name) is None or isinstance(value[name], str) for name in names)


def _are_lists(value: Mapping[str, Any], names: Iterable[str]) -> bool:
    """True if each field is a list of objects or missing."""
    lists = [value[name] for name in names if value.get(name) is not None]
    return all(isinstance(one, list) and all(isinstance(item, dict) for item in one) for one in lists)


def _is_deeper(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [child for parent in level for child in _children(parent)]
    return bool(level)


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
