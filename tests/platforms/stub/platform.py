"""Stub in the list of platforms, and its adapter."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web

from bot.chat.chat_platform import PlatformSpec
from bot.chat.chat_service import ChatService
from bot.core.ports import ACK_SECONDS, IncomingMessage, StopRequest
from bot.health.findings import Finding, HealthCheck, ok
from bot.settings import BotSettings
from platforms.stub.messenger import StubMessenger
from storage.errors import StorageError
from storage.models import ChannelKey, Platform
from storage.stores import Stores
from storage.task_group import DeadlineCalls

if TYPE_CHECKING:
    from bot.health.installation import Installation

STUB = Platform("stub")
SECRET = "secret-of-the-stub"
EVENTS = "/stub/events"


class StubPlatform:
    """``ChatPlatform`` of the stub: events come to one route, rooms are read at another."""

    memberships = None
    files = None

    def __init__(self, service: ChatService) -> None:
        self.messenger = StubMessenger()
        self._service = service
        self._calls = DeadlineCalls(ACK_SECONDS)

    def add_routes(self, app: web.Application) -> None:
        """Add both routes."""
        app.router.add_post(EVENTS, self._handle, name="stub_events")
        app.router.add_get("/stub/rooms/{room}", self._show, name="stub_room")

    async def start(self) -> None:
        """Do nothing: events arrive by the route."""

    async def is_ready(self) -> bool:
        """Return True: events can always arrive."""
        return True

    async def stop(self) -> None:
        """Cancel running calls."""
        await self._calls.aclose()

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""

    async def _handle(self, request: web.Request) -> web.Response:
        """Commit a verified event, then acknowledge it; else answer 503, and it is sent again."""
        if not hmac.compare_digest(request.headers.get("X-Stub-Secret", ""), SECRET):
            raise web.HTTPUnauthorized
        event = await request.json()
        try:
            await self._calls.wait_for(self._commit(event))
        except (StorageError, TimeoutError):
            raise web.HTTPServiceUnavailable from None
        return web.Response()

    async def _commit(self, event: Mapping[str, Any]) -> None:
        service, message = self._service, read_message(event)
        key, kind = message.key, event["type"]
        if kind == "question":
            await service.receive(message)
        elif kind == "edit":
            await service.edit(message)
        elif kind == "delete":
            withdrawn = await service.withdraw(message.message_key)
            if withdrawn and withdrawn.message:
                await self.messenger.delete(withdrawn.address, withdrawn.message)
        elif kind == "stop":
            await service.stop(StopRequest(key, "", message.message_key, lambda _: True))
        elif kind == "join":
            await service.join(key, event["room"], address=message.address)
        elif kind == "leave":
            await service.leave(key)

    async def _show(self, request: web.Request) -> web.Response:
        return web.json_response(self.messenger.rooms[request.match_info["room"]])


def read_message(event: Mapping[str, Any]) -> IncomingMessage:
    """Return the message of an event."""
    house, room, person = (str(event.get(name) or "") for name in ("house", "room", "person"))
    message_key = f"{house}:{room}:{event.get('id')}"
    return IncomingMessage(
        ChannelKey(STUB, house, room),
        room,
        event_key=f"{message_key}:{event['type']}",
        message_key=message_key,
        thread="",
        text=str(event.get("text") or ""),
        address={"room": room, "key": message_key, "asker": f"{STUB}:{house}:{person}"},
    )


def open_stub(settings: BotSettings, service: ChatService, stores: Stores) -> StubPlatform:
    """Return the adapter: it needs no settings."""
    return StubPlatform(service)


async def check_stub(installation: Installation) -> Finding:
    """Return that all is well."""
    return ok("rooms are open")


STUB_PLATFORM = PlatformSpec(
    STUB,
    "Stub",
    open=open_stub,
    route="stub_events",
    not_ready="its rooms are closed",
    is_remote=lambda _: False,
    health_check=lambda installation: HealthCheck(STUB, partial(check_stub, installation), ""),
    message_url=lambda address, message: f"https://stub.example/{address['room']}/{message['place']}",
)
