"""Isolation of installations: no data of one reaches another by any way listed in docs/security.md.

All data of a Slack workspace contains a canary. Another workspace and a Teams tenant have a channel and a
person with the same ids. Each way is tried from all three: only the first one gets the canary.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from fakes.notice_shelf import NoticeShelf
from fakes.term_embedder import TermEmbedder
from harness.empty_homes import make_sqlite
from sqlalchemy import select

from bot.answer_settings import AnswerSettings
from bot.answers.retrieval.web_search import WebSearch
from bot.answers.understanding.channel_folders import ChannelFolders
from bot.answers.understanding.direct_libraries import DirectLibraries
from bot.chat.commands.admin_commands import AdminCommands
from bot.chat.commands.chat_intents import recognize
from bot.chat.conversation.direct_chats import DirectChats
from bot.chat.notifications.question_gaps import find_gaps
from bot.chat.notifications.welcome import ChannelOverviews, WelcomeBuilder
from bot.core.models import Language, Question
from bot.core.wording import reply_words
from bot.platforms.teams.activities import place_of as place_in_teams
from bot.quality.quality_metrics import channel_quality
from ingestion.folder_map.watch_list import FolderMap
from storage.chat.channels import Channels
from storage.chat.feedback import FeedbackStore, FeedbackVerdict
from storage.chat.glossary import GLOSSARY_NAME, GlossaryFile
from storage.chat.inbox import Inbox
from storage.chat.notifications import Notices
from storage.chat.thread_memory import ThreadMemory
from storage.chat.traces import QuestionRecords
from storage.chat.uploads import NewUpload, UploadQuota, Uploads
from storage.chat_models import InboxItem, NewTurn
from storage.clock import utc_now
from storage.documents.catalog import Catalog
from storage.embeddings.vector_cache import VectorCache
from storage.files.image_files import ImageFiles
from storage.files.reading_files import ReadingFiles
from storage.folders.folders import Folders
from storage.index.live_index import LiveIndex
from storage.models import Channel, ChannelKey, PageImage, Platform, TenantName
from storage.sql.audit import AuditLog
from storage.sql.database import Database
from storage.sql.tables import CachedVectorRow, InboxRow, OutboxRow
from storage.web_pages.page_store import WebPageStore
from storage.web_pages.web_sources import SOURCES_NAME, WebSourcesFile

CANARY = "Zanzibarium"
CONVERSATION, PERSON = "C0SAME001", "U0SAME001"
ACME = ChannelKey(Platform("slack"), "T0ACME001", CONVERSATION)
BETA = ChannelKey(Platform("slack"), "T0BETA001", CONVERSATION)
GAMMA = ChannelKey(Platform("teams"), "T0ACME001", CONVERSATION)
PAGE = f"https://example.org/{CANARY}"
SHARED = frozenset({Platform("slack")})
FILES = {
    "folders.toml": f"""
[library.{CANARY}]
channels = ["{ACME.tenant}"]
[[library.{CANARY}.folder]]
location = "/srv/{CANARY}"
[direct_chats]
library = "{CANARY}"
installations = ["{ACME.installation}"]
""",
    SOURCES_NAME: f"""
[[domain]]
name = "{CANARY}"
keywords = ["deposit"]
urls = ["{PAGE}"]
channels = ["{CANARY}"]
""",
    GLOSSARY_NAME: f'[channels.{ACME.tenant}]\n{CANARY} = ["the old name"]\n',
}
WORDS = reply_words(Language.ENGLISH)


@dataclass
class Place:
    """A channel of an installation, and its person's direct chat."""

    channel: Channel
    direct: Channel
    asker: str


@dataclass
class World:
    """A home shared by three installations."""

    home: Path
    database: Database
    places: dict[ChannelKey, Place]

    def __post_init__(self) -> None:
        self.channels, self.catalog = Channels(self.database), Catalog(self.database)
        self.notices, self.folders = Notices(self.database), Folders(self.database)
        self.memory, self.records = ThreadMemory(self.database, 30), QuestionRecords(self.database, 30)
        self.feedback, self.uploads = FeedbackStore(self.database), Uploads(self.database)
        self.libraries = DirectLibraries(self.channels, SHARED)
        self.sources, self.pages = (
            WebSourcesFile(self.home),
            WebPageStore(self.database, ReadingFiles(self.home / "readings")),
        )
        self.audit = AuditLog(self.database)

    @property
    def overviews(self) -> ChannelOverviews:
        """Overviews for App Homes."""
        return ChannelOverviews(self.channels, self.libraries, self.catalog, self.notices)

    async def say(self, place: Place, chat: Channel, text: str, admin: str) -> str:
        """Return the reply to an admin command, with this person as the admin."""
        commands = AdminCommands(
            [admin],
            self.folders,
            self.audit,
            retry_failed=nothing,
            erase_document=nothing,
            shared=SHARED,
        )
        command = recognize(text, Language.ENGLISH)
        assert command is not None
        question = Question("q", text, chat, utc_now(), asker=place.asker)
        return str(await commands.reply(command, question, [], WORDS))


async def nothing(*_: Any) -> int:
    """Return 0 for any command."""
    return 0


async def place_of(channels: Channels, key: ChannelKey) -> Place:
    """Create an installation's channels; a personal Teams chat is direct in the home's tenant only."""
    chat = key._replace(conversation="D0SAME001")
    is_direct = True
    if key.platform == Platform("teams"):
        conversation = {"id": chat.conversation, "conversationType": "personal", "tenantId": key.installation}
        where = place_in_teams({"conversation": conversation}, "another tenant")
        assert where is not None
        is_direct = where.is_direct
    direct = await channels.ensure(chat, is_direct=is_direct)
    asker = f"{key.platform}:{key.installation}:{PERSON}"
    return Place(await channels.ensure(key, is_direct=False), direct, asker)


async def fill(world: World) -> None:
    """Add the canary to all data of the first installation."""
    await FolderMap(world.home / "folders.toml", world.home / "inbox", world.channels, world.folders).begin()
    first = world.places[ACME].channel
    for folder in await world.folders.watched(origin="map"):
        shelf = NoticeShelf(world.database, await world.channels.get(folder.channel_id), folder.id)
        await shelf.publish(await shelf.add(f"{CANARY}.pdf"))
        (notice,) = await world.notices.recent(folder.channel_id, 1)
        await world.notices.store_questions(notice.id, [f"Who is {CANARY}?"])
        await world.folders.report(folder.id, f"{CANARY} is away.")
    now = utc_now()
    record: dict[str, Any] = {"question": CANARY, "searched": CANARY, "answer": CANARY}
    record |= {"milliseconds": {}, "tokens": {}, "top_sources": [], "figures": [], "citations": []}
    record |= {"searches": [{"unknown": [CANARY], "candidates": [{"rank": 1, "file": CANARY, "page": 1}]}]}
    async with world.database.transaction() as session:
        row = InboxRow(
            platform="slack",
            event_key="1",
            message_key="1",
            channel_id=first.id,
            thread="",
            text=CANARY,
            address={"user": PERSON},
            state="done",
        )
        session.add(row)
        await session.flush()
        session.add(OutboxRow(inbox_id=row.id, state="delivered", answer={"state": "not_found"}))
        key = str(row.id)
    await world.records.keep(key, first.id, now, "not_found", record)
    await world.feedback.upsert(first.id, key, "person", FeedbackVerdict.WRONG_ANSWER, comment=CANARY)
    await world.memory.store(NewTurn(key, first.id, "", CANARY, CANARY, CANARY, (), now))
    new = NewUpload(first.id, "1", world.places[ACME].asker, "ab" * 32, 1, {})
    await world.uploads.keep(new, lambda _: f"{CANARY}.pdf", UploadQuota(9, 9))
    await world.pages.approve([PAGE])
    await world.pages.mark_read(PAGE, "0" * 64, 2, {})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """Yield a home in which only the first installation has data."""
    home = tmp_path_factory.mktemp("home")
    url = make_sqlite(home)
    for name, text in FILES.items():
        (home / name).write_text(text)
    async with aclosing(await Database.open(url)) as database:
        places = {key: await place_of(Channels(database), key) for key in (ACME, BETA, GAMMA)}
        made = World(home, database, places)
        await fill(made)
        yield made


async def library_is_asked(world: World, place: Place) -> str:
    """Return the channels searched by a direct message; other chats search their own documents."""
    chat, now = place.direct, utc_now()
    if not chat.is_direct:
        return str(chat)
    item = InboxItem(
        1, 1, 0, chat.platform, chat.id, "", "Why?", {}, now, is_posting=False, message=None, answer=None
    )
    direct = DirectChats(world.channels, world.libraries, world.memory)
    question = await direct.question(item, Question("1", "Why?", chat, now))
    assert isinstance(question, Question)
    return f"{question.channel} {question.members}"


async def library_is_offered(world: World, place: Place) -> str:
    """Return the suggested prompts of a direct chat, which only Slack shows."""
    if place.direct.platform != Platform("slack"):
        return ""
    return str(await world.overviews.direct_questions(place.direct.platform, place.direct.installation))


async def welcome(world: World, place: Place, *, is_direct: bool) -> str:
    """Return the welcome of a channel or direct chat."""
    folders = ChannelFolders(world.folders, world.home / "inbox")
    builder = WelcomeBuilder(world.notices, world.catalog, folders, no_questions, world.libraries)
    return str(await builder.prepare("batch", place.direct if is_direct else place.channel))


async def no_questions(untried: Any) -> dict[int, list[str]]:
    """Try no question."""
    return {}


async def folder(world: World, place: Place) -> str:
    """Return the folder of a channel's documents."""
    return await ChannelFolders(world.folders, world.home / "inbox").location(place.channel)


async def documents(world: World, place: Place) -> str:
    """Return a channel's documents and its overview."""
    listed = await world.catalog.documents(place.channel.id)
    names = await world.catalog.live_names(place.channel.id)
    return f"{listed} {names} {await world.overviews.read([place.channel.tenant])}"


async def tried(world: World, place: Place) -> str:
    """Return the suggested questions of a channel."""
    return str(await world.notices.sample_questions(place.channel.id, 9))


async def domains(world: World, place: Place) -> str:
    """Return the approved sites that a question may open."""
    return str((await world.sources.current()).domains_for(place.channel))


async def cited_page(world: World, place: Place) -> str:
    """Return a page's URL if it may be cited."""
    index = LiveIndex(object(), world.catalog, "space")  # type: ignore[arg-type]
    search = WebSearch(world.sources, world.pages, index, AnswerSettings())
    return PAGE if await search.approves(place.channel, [PAGE]) else ""


async def glossary(world: World, place: Place) -> str:
    """Return a channel's glossary."""
    return str(await GlossaryFile(world.home / GLOSSARY_NAME).entries(place.channel))


async def records(world: World, place: Place) -> str:
    """Return question records by every read method."""
    channel, (one,) = place.channel.id, await world.records.latest(world.places[ACME].channel.id)
    latest, found = await world.records.latest(channel), await world.records.search(channel, CANARY)
    return f"{latest} {found} {await world.records.get(channel, one.key)}"


async def gaps(world: World, place: Place) -> str:
    """Return the unanswered questions."""
    since = world.records.kept_since
    asked = [
        await world.records.asked_since(place.channel.id, since, public_only=one) for one in (True, False)
    ]
    return str([find_gaps(one) for one in asked])


async def quality(world: World, place: Place) -> str:
    """Return the canary if its question is counted."""
    return CANARY if (await channel_quality(world.records, place.channel.id)).questions else ""


async def feedback(world: World, place: Place) -> str:
    """Return feedback on answers, and the pages offered for it."""
    (one,) = await world.records.latest(world.places[ACME].channel.id)
    said = await world.feedback.all(place.channel.id)
    return f"{said} {await world.feedback.candidates(place.channel.id, one.key)}"


async def recalled(world: World, place: Place) -> str:
    """Return the history for a follow-up."""
    return str(await world.memory.recall(place.channel.id, "", utc_now()))


async def asked_last(world: World, place: Place) -> str:
    """Return the last questions of a person with this id, among the channels named by their platform."""
    return str(await Inbox(world.database).recent_of(PERSON, {place.channel.tenant}, 9))


async def folders_in_channel(world: World, place: Place) -> str:
    """Return the folder status for an admin in the channel."""
    return await world.say(place, place.channel, "status of the folders", place.asker)


async def folders_in_direct_chat(world: World, place: Place) -> str:
    """Return the folder status in the admin's direct chat."""
    return await world.say(place, place.direct, "status of the folders", place.asker)


async def admin_of_the_first(world: World, place: Place) -> str:
    """Return the folder status in the first channel for a person with the admin's id."""
    first = world.places[ACME]
    return await world.say(place, first.channel, "status of the folders", first.asker)


async def uploads(world: World, place: Place) -> str:
    """Return the uploads of a channel, which commands find by name."""
    return str(await world.uploads.of_channel(place.channel.id))


Way = Callable[[World, Place], Awaitable[str]]
WAYS: dict[str, Way] = {
    "direct library: questions": library_is_asked,
    "direct library: suggestions": library_is_offered,
    "direct library: welcome": partial(welcome, is_direct=True),
    "library of channels: welcome": partial(welcome, is_direct=False),
    "library of channels: folder": folder,
    "library of channels: documents": documents,
    "web pages: domains": domains,
    "web pages: citations": cited_page,
    "glossary": glossary,
    "suggestions": tried,
    "records": records,
    "gaps": gaps,
    "quality": quality,
    "feedback": feedback,
    "follow-ups": recalled,
    "last questions": asked_last,
    "uploads": uploads,
    "admins: in a channel": folders_in_channel,
    "admins: in a direct chat": folders_in_direct_chat,
    "admins: a person of the same id": admin_of_the_first,
}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("way", WAYS)
async def test_no_data_of_an_installation_reaches_another(world: World, way: str) -> None:
    """Shows that only the canary's own installation gets it, and neither of two others with the same ids."""
    shown = {key: CANARY in await WAYS[way](world, place) for key, place in world.places.items()}
    assert shown == {ACME: True, BETA: False, GAMMA: False}


@pytest.mark.asyncio(loop_scope="module")
async def test_an_admin_pauses_no_folder_of_another_installation(world: World) -> None:
    """Shows it from a direct chat, where an admin's command covers all folders of the installation."""
    watched = {
        one.id for one in await world.folders.watched() if one.channel_id == world.places[ACME].channel.id
    }
    for key, paused in ((BETA, set()), (GAMMA, set()), (ACME, watched)):
        place = world.places[key]
        await world.say(place, place.direct, "pause all folders", place.asker)
        assert await world.folders.paused() == paused


@pytest.mark.asyncio(loop_scope="module")
async def test_a_silent_channel_belongs_to_the_workspace_in_its_name(world: World) -> None:
    """Shows it in direct chats with admins: a folder may feed such a channel before its first question."""
    silent = await world.channels.ensure_tenant(TenantName(f"sl_{BETA.installation}_C0SILENT1"))
    await world.folders.ensure(silent.id, "/srv/silent", watched=True)
    shown = {
        key: "/srv/silent" in await world.say(place, place.direct, "status of the folders", place.asker)
        for key, place in world.places.items()
    }
    assert shown == {ACME: False, BETA: True, GAMMA: False}


@pytest.mark.asyncio(loop_scope="module")
async def test_caches_contain_no_name_and_no_text(world: World) -> None:
    """Shows vectors keyed by a hash of their text, and images by the hash of their document."""
    vectors = VectorCache(world.database)
    embedder = TermEmbedder("terms")
    made = await vectors.embed(embedder, [CANARY])
    async with world.database.snapshot() as session:
        (row,) = await session.scalars(select(CachedVectorRow))
    assert CANARY.casefold() not in str(row.model_dump()).casefold()
    assert np.array_equal(await vectors.embed(embedder, [CANARY]), made)
    images = ImageFiles(world.home / "images")
    kept = images.write(f"{'ab' * 32}-1-132", PageImage(b"\x89PNG", "image/png"))
    assert CANARY not in kept.name
    assert images.read(f"{'cd' * 32}-1-132") is None
