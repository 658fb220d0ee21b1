"""Slack adapter, inbox, answers and index in one process, with real PDFs and restricted channel members."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from fakes.member_slack import MemberSlack, serve_members
from fakes.notice_shelf import recent_notices
from fakes.slack_events import TEAM, Signed, deliver, envelope
from samples.paper import pdf
from sqlalchemy import select
from sqlmodel import col

from bot import bootstrap
from bot.answers.citations.signed_links import Links
from bot.app import ChatPlatforms
from bot.core.models import AnswerFigure
from bot.public_links import open_links
from bot.settings import BotSettings, Settings
from harness.empty_homes import make_sqlite
from harness.lasting_pool import LastingPdf, lasting_side
from harness.waiting import until
from ingestion.app import Ingestion
from ingestion.settings import IngestionSettings
from storage.embeddings.base import Embedder
from storage.errors import DocumentError
from storage.index.base import Index
from storage.models import Channel, PageImage, Rung, TenantName
from storage.settings import StorageSettings
from storage.sql.tables import InboxRow
from storage.stores import Stores, open_embedder, open_index

SECRET = "signing-secret-of-the-test"


@dataclass(frozen=True, slots=True)
class Room:
    """A channel with one document."""

    id: str
    name: str
    topic: str
    password: str
    renewer: str

    @property
    def tenant(self) -> TenantName:
        """Tenant of the channel."""
        return TenantName(f"sl_{TEAM}_{self.id}")

    @property
    def secrets(self) -> tuple[str, ...]:
        """Words found in this channel only, with its document's name."""
        return self.password, self.renewer, f"plan-{self.id}".lower(), self.name

    @property
    def question(self) -> str:
        """Question that its document answers."""
        return f"What is the password of the {self.topic}?"

    @staticmethod
    def direct(person: str) -> TenantName:
        """Return the tenant of a person's direct chat."""
        return TenantName(f"sl_{TEAM}_D{person[1:]}")

    def page(self, more: str = "") -> bytes:
        """Return its document."""
        text = (
            f"The password of the {self.topic} is {self.password}. It is renewed by {self.renewer}.\n{more}"
        )
        return pdf(text)

    def is_in(self, said: str) -> bool:
        """True if a text contains any of its secrets."""
        return any(one.casefold() in said.casefold() for one in self.secrets)


ROOMS = (
    Room("C0HARVEST", "room-one", "harvest festival", "Zanzibarium", "Quibblewick"),
    Room("C0FERRY", "room-two", "night ferry", "Quokkasphere", "Marzipandra"),
    Room("C0MUSEUM", "room-three", "museum cellar", "Velocitron", "Oxlipstein"),
    Room("C0ORCHARD", "room-four", "orchard gate", "Pumpernix", "Dandelore"),
    Room("C0TUNNEL", "room-five", "railway tunnel", "Brackenwurst", "Ululatrix"),
)


@dataclass
class MemberOffice:
    """A running bot whose direct chats search their person's channels."""

    slack: MemberSlack
    signed: Signed
    stores: Stores
    ingestion: Ingestion
    platforms: ChatPlatforms
    links: Links
    inbox: Path
    numbers: count[int] = field(default_factory=lambda: count(1))

    def enter(self, person: str, *rooms: Room) -> str:
        """Make a person a member of exactly these channels; return their direct chat."""
        self.slack.members[person] = {one.id for one in rooms}
        direct = f"D{person[1:]}"
        self.slack.directs[direct] = person
        return direct

    async def read(self, *rooms: Room, more: str = "") -> None:
        """Write each channel's document and wait until all are read, with their sample questions."""
        for room in rooms:
            place = self.inbox / room.tenant / f"plan-{room.id}.pdf"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(room.page(more))
        await self.ingestion.ingest_root(self.inbox, Rung.FULL, lambda _: None)
        for channel in await self.stores.channels.of_tenants([room.tenant for room in rooms]):
            (room,) = [one for one in rooms if one.tenant == channel.tenant]
            for notice in await recent_notices(self.stores.database, channel.id, 9):
                tried = f"{room.question} Is it {room.password}?"
                await self.stores.notices.store_questions(notice.id, [tried])

    async def say(self, person: str, text: str, thread: str | None = None, ts: str | None = None) -> str:
        """Write to the bot in a direct chat; return its reply as JSON. With ``ts``: edit that message.

        Waits until the reply is recorded, so that the next message can refer to it.
        """
        direct, number = f"D{person[1:]}", next(self.numbers)
        said = {"user": person, "text": text, "ts": ts or f"{1000 + number}.000200", "team": TEAM}
        place = {"type": "message", "channel": direct, "channel_type": "im"}
        more = {"thread_ts": thread} if thread else {}
        event = place | said | more
        if ts is not None:
            before = {"user": person, "text": "something else", "ts": ts}
            event = place | {"subtype": "message_changed", "message": said, "previous_message": before}
        seen = len(self.slack.shown[direct])
        await deliver(lambda: self.signed.send(envelope(f"Ev{number}", **event)))
        reply = await self.until_shown(direct, seen, f"{TEAM}:{direct}:{said['ts']}")
        await self.until_idle()
        return reply

    async def until_shown(self, place: str, seen: int, words: str = "") -> str:
        """Return the first complete message with these words at a place after the first ``seen``."""

        async def shown() -> str | None:
            new = self.slack.shown[place][seen:]
            return new[-1] if new and words in new[-1] and '"blocks"' in new[-1] else None

        return await until(shown, every=0.02)

    async def click(self, person: str, reply: str, action: str) -> str:
        """Click a button of a reply in a direct chat; return what the person alone is shown then."""
        direct = f"D{person[1:]}"
        block = _block_of(json.loads(reply)["blocks"], action)
        element = next(one for one in block["elements"] if one["action_id"] == action)
        value = element["value"]
        seen = len(self.slack.shown[direct])
        payload = self.payload(person, channel={"id": direct}, message={"ts": "1.1"})
        clicked = {"action_id": action, "block_id": block["block_id"], "value": value}
        await deliver(lambda: self.signed.click(payload | {"actions": [clicked]}))

        async def shown() -> str:
            return "".join(self.slack.shown[direct][seen:])

        return await until(shown, every=0.02)

    def payload(self, person: str, **more: Any) -> dict[str, Any]:
        """Return the common fields of a person's clicks."""
        home = {"team": {"id": TEAM}, "user": {"id": person, "team_id": TEAM}, "enterprise": None}
        return {"type": "block_actions", "container": {}, **home, **more}

    async def command(self, person: str, text: str) -> tuple[str, str]:
        """Run ``/footnote`` in a direct chat; return the reply and its response URL."""
        number, direct = next(self.numbers), f"D{person[1:]}"
        path = f"/response/{person}-{number}"
        url = self.slack.api_url.removesuffix("/api/") + path
        form = {"command": "/footnote", "text": text, "team_id": TEAM, "user_id": person}
        where = {"channel_id": direct, "channel_name": "directmessage"}

        async def send() -> int:
            fields = form | where | {"trigger_id": f"T{number}", "response_url": url}
            return (await self.signed.command(**fields))[0]

        await deliver(send)
        return await self.until_shown(path, 0), url

    async def share(self, person: str, reply: str, url: str) -> str:
        """Click *Share* below a private answer; return what is shown then."""
        path = url[url.index("/response/") :]
        seen = len(self.slack.shown[path])
        block = _block_of(json.loads(reply)["blocks"], "share-answer")
        clicked = {"action_id": "share-answer", "value": block["elements"][0]["value"]}
        payload = self.payload(person, channel={"id": f"D{person[1:]}"}, response_url=url)
        await deliver(lambda: self.signed.click(payload | {"actions": [clicked]}))

        async def shown() -> str:
            return "".join(self.slack.shown[path][seen:])

        return await until(shown, every=0.02)

    async def records(self, channel: Channel) -> list[dict[str, Any]]:
        """Return the traces of a channel's questions, newest first, once none is in progress."""
        await self.until_idle()
        return [one.record for one in await self.stores.records.latest(channel.id)]

    async def until_idle(self) -> None:
        """Wait until no question or note is pending."""

        async def is_idle() -> bool:
            async with self.stores.database.snapshot() as session:
                waiting = select(col(InboxRow.id)).where(col(InboxRow.state) == "waiting")
                return not list(await session.scalars(waiting))

        await until(is_idle, every=0.05)

    async def home(self, person: str) -> str:
        """Open a person's App Home; return its view."""
        seen = len(self.slack.shown[person])
        opened = {"type": "app_home_opened", "user": person, "channel": f"D{person[1:]}", "tab": "home"}
        event = envelope(f"Ev{next(self.numbers)}", **opened)
        await deliver(lambda: self.signed.send(event))
        return await self.until_shown(person, seen)

    async def click_home(self, person: str, view: str, room: Room) -> None:
        """Click the first question of a channel in a person's App Home."""
        blocks = json.loads(view)["view"]["blocks"]
        block = next(one for one in blocks if one.get("block_id") == f"ask:1:{room.tenant}")
        action = {name: block["accessory"][name] for name in ("action_id", "value")}
        home = {"type": "home", "private_metadata": f"D{person[1:]}"}
        stamp = {"block_id": block["block_id"], "action_ts": f"{next(self.numbers)}.000300"}
        clicked = self.payload(person, view=home, actions=[action | stamp])
        await deliver(lambda: self.signed.click(clicked))


def _block_of(blocks: list[dict[str, Any]], action: str) -> dict[str, Any]:
    """Return the block with a button."""
    return next(
        block for block in blocks if any(one.get("action_id") == action for one in block.get("elements", ()))
    )


async def make_home(path: Path) -> None:
    """Make a home whose channels have been read, as a template for offices."""
    make_sqlite(path)
    async with open_office(path) as office:
        await office.read(*ROOMS)


@asynccontextmanager
async def open_office(path: Path) -> AsyncIterator[MemberOffice]:
    """Yield an office on the home at ``path``."""
    async with AsyncExitStack() as stack:
        slack = await stack.enter_async_context(
            serve_members(MemberSlack({}, {one.id: one.name for one in ROOMS}))
        )
        settings = _settings(path, slack.api_url)
        stores = await stack.enter_async_context(bootstrap.open_home(settings))
        embedder = await stack.enter_async_context(open_embedder(settings.storage, None))
        index = await stack.enter_async_context(open_index(stores))
        links = await open_links(settings, stores.database)
        answering = await stack.enter_async_context(
            bootstrap.build_answering(settings, stores, embedder, index, links)
        )
        ingestion = _ingestion(settings, stores, embedder, index)
        stack.push_async_callback(ingestion.stop)
        platforms = ChatPlatforms(settings, stores, answering, links, draw_nothing)
        app = web.Application()
        platforms.add_routes(app)
        server = await stack.enter_async_context(TestServer(app))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        await platforms.start()
        stack.push_async_callback(platforms.stop)
        signed = Signed(session, str(server.make_url("/")).rstrip("/"), SECRET)
        yield MemberOffice(slack, signed, stores, ingestion, platforms, links, path / "inbox")


def _settings(path: Path, api_url: str) -> Settings:
    return Settings(
        StorageSettings(home=path),
        BotSettings(
            slack_bot_token="xoxb-test",
            slack_signing_secret=SECRET,
            slack_api_url=api_url,
            direct_chats="channels",
        ),
        IngestionSettings(layout=False),
    )


def _ingestion(settings: Settings, stores: Stores, embedder: Embedder, index: Index) -> Ingestion:
    return Ingestion(
        settings.ingestion,
        max_file_mb=settings.storage.max_file_mb,
        database=stores.database,
        blobs=stores.blobs,
        files=stores.files,
        pdf=LastingPdf(settings.storage, stores.passwords),
        embedder=embedder,
        index=index,
        channels=stores.channels,
        passwords=stores.passwords,
        web_sources=stores.web_sources,
        web_pages=stores.web_pages,
        compute_pool=lasting_side(),
    )


async def draw_nothing(figure: AnswerFigure) -> PageImage:
    """Raise: no page can be rendered here."""
    raise DocumentError(f"page {figure.page} is not drawn")
