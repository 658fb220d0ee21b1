"""Starts and stops bot and ingestion in one process for ``footnote serve``."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from aiohttp import web

from bot.answers.citations.shared_keys import REFRESH_SECONDS
from bot.answers.citations.signed_links import Links
from bot.answers.pipeline import Answering
from bot.answers.trace import QuestionRecord
from bot.answers.trace_writer import CountQuestion
from bot.bootstrap import (
    build_answering,
    build_api,
    build_chat_service,
    build_conversation,
    build_ingestion,
    build_notifier,
    build_outage_watch,
    build_reviser,
    build_uploads,
    embedding_key,
    folder_owners,
    open_home,
)
from bot.chat.chat_platform import ChatMessenger, ChatPlatform, PlatformSpec
from bot.chat.commands.chat_intents import load_phrases
from bot.chat.conversation.direct_chats import MembershipLookup
from bot.chat.conversation.memory import running_retention
from bot.chat.notifications.answer_revisions import AnswerReviser
from bot.chat.notifications.notifier import Notifier
from bot.console_secret import console_address, read_console_secret
from bot.core.ports import DrawFigure
from bot.operations.effective_settings import effective_settings, rooms_of
from bot.operations.metrics.service_metrics import ServiceMetrics
from bot.operations.metrics.state_collector import CountSources, StateCollector
from bot.platforms.registry import PLATFORMS, SIGNED_ROUTES, loopback_links_warning, renewal_urls
from bot.public_links import open_links
from bot.server_socket import BACKLOG, ServerSocket
from bot.settings import Settings
from bot.uploads.file_host import FileHost
from bot.web.app import build_web, make_runner
from bot.web.connections import ConnectionLimits, cap_to_file_descriptors
from bot.web.figure_images import FigureImages
from bot.web.metrics_page import metrics_routes, serving_metrics
from bot.web.page_images import PageImages
from bot.web.readiness import CHECK_INTERVAL_SECONDS, Check, Readiness
from ingestion.app import Ingestion
from storage.config_file import MAP_NAME
from storage.errors import InfrastructureError, raised_at
from storage.index.base import Index
from storage.index.embedded.index import EmbeddedIndex
from storage.index.embedded.tenant_check import TenantCheck
from storage.models import Platform
from storage.queues.local_copies import TICK_SECONDS, LocalCopies
from storage.stores import Stores, open_embedder, open_index, open_pdf_process, verify_blob_store
from storage.task_group import cancel_and_wait

# Time that questions and messages in progress get at shutdown.
DRAIN_SECONDS = 10.0
# Standard OpenTelemetry variables; traces are exported if either is set.
OTLP_ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Service:
    """A running ``footnote serve``."""

    stores: Stores
    startup_banner: tuple[str, str, str]


@asynccontextmanager
async def open_service(settings: Settings) -> AsyncIterator[Service]:
    """Yield the running service; at exit, questions in progress get ``DRAIN_SECONDS`` to finish.

    Raises:
        StorageError: a part cannot be opened; the message says what to do.
    """
    async with AsyncExitStack() as stack:
        server_socket = stack.enter_context(ServerSocket(settings.bot.host, settings.bot.port, settings.home))
        phrases = asyncio.create_task(asyncio.to_thread(load_phrases))
        stores = await stack.enter_async_context(open_home(settings))
        await verify_blob_store(stores, wait_until_ready=True)
        pdf = await stack.enter_async_context(
            open_pdf_process(stores, readers=settings.ingestion.read_workers)
        )
        embedder = await stack.enter_async_context(open_embedder(settings.storage, embedding_key(settings)))
        index = await stack.enter_async_context(open_index(stores, wait_until_ready=True))
        server_socket.announce()
        await stack.enter_async_context(running_retention(stores.retention))
        links = await open_links(settings, stores.database)
        await stack.enter_async_context(run_every(links.refresh_keys, REFRESH_SECONDS, "link keys"))
        ingestion = build_ingestion(settings, stores, embedder, index, pdf)
        metrics, fetch = ServiceMetrics(SIGNED_ROUTES), ingestion.fetch_web_pages
        ingestion.watch_vision(metrics.count_description)
        count = await _enable_tracing(metrics.count_question, ingestion, stack)
        answering = await stack.enter_async_context(
            build_answering(settings, stores, embedder, index, links, fetch_pages=fetch, count=count)
        )
        await _start_ingestion(settings, stores, ingestion, stack)
        images = PageImages(stores.blobs, pdf, settings.bot.page_images_mb * 1024 * 1024)
        draw = FigureImages(links, stores, images).draw
        platforms = ChatPlatforms(settings, stores, answering, links, draw)
        secret = read_console_secret(settings.home) if settings.bot.serves_console(links.public_url) else None
        stack.push_async_callback(platforms.stop)
        await phrases
        await stack.enter_async_context(
            _open_web(
                settings,
                stores,
                answering,
                links=links,
                images=images,
                platforms=platforms,
                server_socket=server_socket,
                index=index,
                metrics=metrics,
                ingestion=ingestion,
                console_secret=secret,
            )
        )
        if settings.bot.serves_chats:
            await platforms.start()
            await stack.enter_async_context(_notifications(settings, stores, links, platforms))
        if warning := loopback_links_warning(settings.bot, links.public_url):
            _log.warning(warning)
        # Without a secret the console may still be served under the public URL, behind sign-in.
        url = links.public_url if settings.sign_in and not secret else server_socket.url
        yield Service(stores, startup_banner(settings, console_address(url, secret), platforms.names))


async def _enable_tracing(count: CountQuestion, ingestion: Ingestion, stack: AsyncExitStack) -> CountQuestion:
    """Also trace questions and ingestion steps if the environment names a collector; else import nothing."""
    if not any(os.environ.get(name) for name in OTLP_ENDPOINT_VARIABLES):
        return count
    try:
        from bot.operations.metrics.otel_spans import open_spans
    except ImportError:
        _log.warning("OpenTelemetry packages are missing, traces are off: pip install 'footnote-bot[otel]'")
        return count
    spans = await stack.enter_async_context(open_spans())
    ingestion.on_step = spans.write_step

    def count_and_trace(record: QuestionRecord) -> None:
        count(record)
        spans.write_question(record)

    return count_and_trace


async def _start_ingestion(
    settings: Settings, stores: Stores, ingestion: Ingestion, stack: AsyncExitStack
) -> None:
    """Watch folders and read PDFs; in a bot-only process, evict local copies of erased contents instead."""
    stack.push_async_callback(ingestion.stop)
    if settings.bot.runs_ingestion:
        await ingestion.start(settings.inbox, settings.home / MAP_NAME)
        return
    copies = LocalCopies(stores.database, stores.blobs, stores.files)
    await stack.enter_async_context(run_every(copies.evict_unknown, TICK_SECONDS, "local copies"))


class ChatPlatforms:
    """Connected chat platforms, and the conversation that receives their messages."""

    def __init__(
        self,
        settings: Settings,
        stores: Stores,
        answering: Answering,
        links: Links,
        draw: DrawFigure,
        *,
        specs: Sequence[PlatformSpec] = PLATFORMS,
    ) -> None:
        """Open the platforms among ``specs`` that are configured; nothing is sent before ``start``.

        Raises:
            SettingsError: the settings of a platform are incomplete.
        """
        self.messengers: dict[Platform, ChatMessenger] = {}
        memberships: dict[Platform, MembershipLookup] = {}
        hosts: dict[Platform, FileHost] = {}
        self._conversation = build_conversation(
            settings.bot,
            stores,
            answering,
            links,
            self.messengers,
            memberships=memberships,
            take_upload=build_uploads(settings, stores, hosts).take,
        )
        self._connected: list[tuple[PlatformSpec, ChatPlatform]] = []
        for spec in specs if settings.bot.serves_chats else ():
            service = build_chat_service(
                spec.name,
                settings.bot,
                stores,
                self._conversation,
                links=links,
                draw=draw,
                find_owners=partial(folder_owners, settings),
            )
            if (platform := spec.open(settings.bot, service, stores)) is None:
                continue
            self._connected.append((spec, platform))
            self.messengers[spec.name] = platform.messenger
            if platform.memberships:
                memberships[spec.name] = platform.memberships
            if platform.files:
                hosts[spec.name] = platform.files
        self._working: asyncio.Task[None] | None = None

    @property
    def names(self) -> list[str]:
        """Display names of the connected platforms."""
        return [spec.label for spec, _ in self._connected]

    @property
    def checks(self) -> dict[str, Check]:
        """Readiness check of each connected platform."""
        return {spec.name: platform.is_ready for spec, platform in self._connected}

    @property
    def reasons(self) -> dict[str, str]:
        """Reason that each connected platform gives while it is not ready."""
        return {spec.name: spec.not_ready for spec, _ in self._connected}

    def add_routes(self, app: web.Application) -> None:
        """Register the platforms' HTTP routes."""
        for _, platform in self._connected:
            platform.add_routes(app)

    async def start(self) -> None:
        """Start processing questions, those left from the last run first.

        Raises:
            SettingsError: a platform rejects its credentials.
        """
        self._working = asyncio.create_task(self._conversation.run(), name="conversation")
        for _, platform in self._connected:
            await platform.start()

    async def stop(self) -> None:
        """Stop receiving events, then drain questions in progress."""
        for _, platform in self._connected:
            await platform.stop()
        if self._working:
            await self._conversation.drain(DRAIN_SECONDS)
            await self._working
        for _, platform in self._connected:
            await platform.aclose()


@asynccontextmanager
async def _running(loop: Notifier | AnswerReviser, name: str) -> AsyncIterator[None]:
    """Run a delivery loop until the context ends; a message in progress is finished first."""
    running = asyncio.create_task(loop.run(), name=name)
    try:
        yield
    finally:
        loop.stop()
        await asyncio.wait([running], timeout=DRAIN_SECONDS)
        await cancel_and_wait(running)


@asynccontextmanager
async def run_every(work: Callable[[], Awaitable[None]], seconds: float, name: str) -> AsyncIterator[None]:
    """Run ``work`` every ``seconds`` until the context ends; a failure is retried at the next interval."""

    async def run() -> None:
        while True:
            try:
                await work()
            except InfrastructureError:
                pass  # an outage, logged where it is waited for
            except Exception as error:  # otherwise the loop would end silently
                _log.warning("%s failed, retrying at the next interval: %s", name, raised_at(error))
            await asyncio.sleep(seconds)

    running = asyncio.create_task(run(), name=name)
    try:
        yield
    finally:
        await cancel_and_wait(running)


@asynccontextmanager
async def _notifications(
    settings: Settings, stores: Stores, links: Links, platforms: ChatPlatforms
) -> AsyncIterator[None]:
    """Post file notifications and revise answers whose sources changed, until the context ends."""
    reviser = build_reviser(stores, links, platforms.messengers)
    notifier = await build_notifier(settings, stores, links, platforms.messengers)
    async with _running(notifier, "announcing"), _running(reviser, "revising"):
        yield


@asynccontextmanager
async def _open_web(
    settings: Settings,
    stores: Stores,
    answering: Answering,
    *,
    links: Links,
    images: PageImages,
    platforms: ChatPlatforms,
    server_socket: ServerSocket,
    index: Index,
    metrics: ServiceMetrics,
    ingestion: Ingestion,
    console_secret: str | None,
) -> AsyncIterator[None]:
    checks: dict[str, Check] = {
        "sql": stores.database.ping,
        "index": index.ping,
        "blobs": lambda: asyncio.to_thread(stores.blobs.ping),
        "keys": lambda: asyncio.to_thread(links.has_keys),
    }
    if isinstance(index, EmbeddedIndex):
        checks["tenants"] = TenantCheck(stores.database, index).has_all
    readiness = Readiness(checks | platforms.checks, reasons=platforms.reasons)
    sources = CountSources(
        lambda: {"page images": (images.hits, images.misses), "vectors": ingestion.vector_lookups},
        lambda: ingestion.web_fetches,
        readiness.not_ready,
        [*checks, *platforms.checks],
    )
    render = StateCollector(stores.database, sources, metrics.registry).render
    app = build_web(
        answering=answering,
        trace=answering.trace,
        stores=stores,
        links=links,
        images=images,
        settings=settings,
        readiness=readiness,
        api=build_api(settings, stores, answering, links, build_uploads(settings, stores, {})),
        console_secret=console_secret,
        console_routes=metrics_routes(render),
        renewal_urls=renewal_urls,
        count_request=metrics.count_request,
        count_opening=metrics.count_opening,
        effective_settings=effective_settings(rooms_of(settings)),
    )
    platforms.add_routes(app)
    limits = ConnectionLimits(
        cap_to_file_descriptors(settings.bot.connections), settings.bot.connections_per_address
    )
    runner = make_runner(app, limits)
    await runner.setup()
    try:
        server_socket.listen()
        await web.SockSite(runner, server_socket.socket, backlog=BACKLOG).start()
        watch = await build_outage_watch(settings, stores, readiness)
        async with (
            serving_metrics(render, settings.bot.metrics_listen),
            run_every(watch.tick, CHECK_INTERVAL_SECONDS, "outages"),
        ):
            yield
    finally:
        await runner.cleanup()
        await readiness.aclose()


def startup_banner(settings: Settings, url: str, chats: Sequence[str]) -> tuple[str, str, str]:
    """Return what ``serve`` prints when ready: where to ask, where to drop PDFs, which engines run."""
    try:
        folders = [path.name for path in settings.inbox.iterdir() if path.is_dir()]
    except OSError:  # the inbox is unavailable, e.g. an unmounted share
        folders = []
    place = folders[0] if len(folders) == 1 else "<channel>"
    return (
        f"Ask        {' and '.join([url, *chats])}",
        f"Drop PDFs  {settings.inbox / place}/",
        f"Engines    {'; '.join(_engines(settings))}",
    )


def _engines(settings: Settings) -> Iterator[str]:
    chosen, bot = settings.storage, settings.bot
    index = {None: "embedded (SQLite FTS5 and numpy)", "embedded": "Weaviate (our child process)"}
    yield f"index: {index.get(chosen.weaviate_url, f'Weaviate at {chosen.weaviate_url}')}"
    url = chosen.database_url
    yield "SQL: PostgreSQL" if url and url.get_secret_value().startswith("postgresql") else "SQL: SQLite"
    if chosen.embed_model:
        yield f"embeddings: {chosen.embed_model}"
    second = f", else {bot.second_model}" if bot.second_model else ""
    yield f"answers: {bot.openai_model}{second}" if bot.has_model else "answers: quotes (no model key)"
