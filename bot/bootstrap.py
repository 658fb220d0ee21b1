"""Composition root: knows every concrete class; ``app.py`` runs the result for ``serve``.

Async context managers close what they opened, in reverse order. Tests build the same program with other
settings. SDKs that are slow to import are imported only where they are chosen: `footnote ask` starts a second
sooner.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from bot.answers.citations.citations import CitationService
from bot.answers.citations.relocation import PassageLocator
from bot.answers.citations.signed_links import Links
from bot.answers.citations.source_buttons import LinklessAnnouncer, LinklessAnswering, LinklessNotes
from bot.answers.document_outline import DocumentOutlines
from bot.answers.generation.answer_writer import AnswerWriter
from bot.answers.generation.extractive import ExtractiveAnswerer
from bot.answers.generation.judge import Judge
from bot.answers.pipeline import Answering
from bot.answers.retrieval.hybrid_retriever import (
    HybridRetriever,
    MultiQuery,
    MultiQueryMode,
    QueryExpansionRetriever,
)
from bot.answers.retrieval.reranking import Reranker, RerankingRetriever, SentenceReranker
from bot.answers.retrieval.web_search import FetchPages, WebSearch
from bot.answers.rewriting.query_rewriting import FollowUpRewriter, ModelRewriter
from bot.answers.rewriting.question_translation import QuestionTranslator
from bot.answers.search_notes import SearchNotes
from bot.answers.trace_writer import CountQuestion, writing_traces
from bot.answers.understanding.channel_folders import ChannelFolders
from bot.answers.understanding.direct_libraries import DirectLibraries
from bot.answers.understanding.spelling_correction import SpellingCorrector
from bot.chat.chat_service import ChatService
from bot.chat.commands.admin_commands import AdminCommands
from bot.chat.commands.chat_commands import ChatCommands
from bot.chat.commands.link_renewal import LinkRenewal
from bot.chat.commands.thread_commands import ThreadCommands
from bot.chat.commands.upload_commands import UploadCommands
from bot.chat.conversation.conversation import Conversation
from bot.chat.conversation.direct_chats import DirectChats, MembershipLookup
from bot.chat.conversation.feedback import AnswerFeedback
from bot.chat.conversation.handoffs import FindOwners, Handoffs
from bot.chat.notifications.answer_revisions import AnswerReviser
from bot.chat.notifications.gap_digest import GapDigest
from bot.chat.notifications.notifier import Notifier, Routes
from bot.chat.notifications.page_notes import PageNotes
from bot.chat.notifications.receipts import ReceiptBuilder
from bot.chat.notifications.usage_summary import UsageSummary
from bot.chat.notifications.welcome import ChannelOverviews
from bot.core.ports import (
    Announcer,
    DrawFigure,
    IngestUpload,
    Messenger,
    Retriever,
)
from bot.platforms.registry import loopback_links_warning, shared_platforms
from bot.public_links import open_links
from bot.quality.monthly_usage import TokenPrices
from bot.settings import BotSettings, Settings, revealed
from bot.uploads.file_checks import MEGABYTE
from bot.uploads.file_host import FileHost
from bot.uploads.upload_intake import UploadIntake, UploadPolicy, UploadRules
from bot.web.readiness import OutageWatch, Readiness
from storage.chat.answer_sources import AnswerSources, Subscriptions
from storage.chat.inbox import Inbox
from storage.chat.notification_events import Outages, record_digests, record_summary
from storage.chat.uploads import Uploads
from storage.chat_models import UploadQuota
from storage.config_file import MAP_NAME
from storage.embeddings.base import Embedder, QueryEmbedder
from storage.embeddings.cosine_scale import CosineCalibration
from storage.errors import SettingsError
from storage.index.base import Index
from storage.index.live_index import LiveIndex
from storage.models import Channel, Platform, Rung, TenantName
from storage.pdf.pdf_process import PdfProcess
from storage.queues.reading_repair import SentenceVectorStore, retry_failed
from storage.settings import OPENAI
from storage.sql.audit import AuditLog
from storage.sql.changes import PollGate
from storage.sql.leased_queue import process_name
from storage.sql.tables import InboxRow, NoticeRow, OutboxRow
from storage.stores import (
    Stores,
    make_eraser,
    open_embedder,
    open_index,
    open_pdf_process,
    open_stores,
    verify_blob_store,
)

if TYPE_CHECKING:
    from bot.llm.chat_model import JsonCalls
    from bot.llm.generator import ModelGenerator
    from bot.rerankers.cross_encoder import CrossEncoder
    from bot.rerankers.llm_reranker import LlmReranker
    from bot.rerankers.rerank_api import ApiReranker
    from bot.web.api.api_service import ApiService
    from ingestion.app import Ingestion
    from ingestion.reading.captioning import VisionEndpoint
    from ingestion.settings import IngestionSettings

# A crashed process's question is claimed by another process, or by the next start, after this time.
LEASE_SECONDS = 20.0


def open_home(settings: Settings) -> AbstractAsyncContextManager[Stores]:
    """Open SQL and files of the home named in the settings; raises as ``open_stores``."""
    return open_stores(settings.storage, Rung(settings.ingestion.stop_at))


def embedding_key(settings: Settings) -> str | None:
    """Return the key for embeddings; the model's key is reused only for OpenAI or the model's endpoint."""
    chosen, bot = settings.storage, settings.bot
    models = bot.openai_base_url or OPENAI
    is_trusted = (chosen.embed_base_url or OPENAI).rstrip("/") in (OPENAI, models.rstrip("/"))
    return revealed(chosen.embed_api_key or (bot.openai_api_key if is_trusted else None))


@asynccontextmanager
async def open_retriever(
    settings: BotSettings,
    stores: Stores,
    search: LiveIndex,
    embedder: QueryEmbedder,
    vectors: SentenceVectorStore,
) -> AsyncIterator[Retriever]:
    """Yield the retriever of one home; its models and connections are closed at exit.

    Raises:
        EngineStartError: a local cross-encoder cannot be loaded.
        SettingsError: the chosen reranker or query expansion lacks a setting.
    """
    async with AsyncExitStack() as stack:
        hybrid = HybridRetriever(search, embedder, settings)
        mode = MultiQueryMode(settings.reword)
        llm = None if mode is MultiQueryMode.NEVER else _open_multi_query(settings, stack)
        speller = SpellingCorrector(stores.vocabularies, web_sources=stores.web_sources)
        wide = QueryExpansionRetriever(hybrid, stores.glossary, llm, mode=mode, speller=speller)
        if settings.reranker == "none":
            yield wide
            return
        is_ours = settings.reranker == "sentences"
        reranker = SentenceReranker(vectors) if is_ours else await _open_reranker(settings, stores, stack)
        yield RerankingRetriever(wide, reranker, settings)


def _open_multi_query(settings: BotSettings, stack: AsyncExitStack) -> MultiQuery:
    from bot.llm.multi_query import MultiQueryModel

    multi_query = MultiQueryModel(_model_calls(settings, "FOOTNOTE_REWORD", settings.reword_seconds))
    stack.push_async_callback(multi_query.aclose)
    return multi_query


async def _open_reranker(settings: BotSettings, stores: Stores, stack: AsyncExitStack) -> Reranker:
    reranker: CrossEncoder | ApiReranker | LlmReranker
    if settings.reranker == "folder":
        from bot.rerankers.cross_encoder import CrossEncoder

        reranker = await asyncio.to_thread(CrossEncoder.load, settings)
    elif settings.reranker == "endpoint":
        from bot.rerankers.rerank_api import ApiReranker

        reranker = ApiReranker(settings)
    else:
        from bot.rerankers.llm_reranker import LlmReranker

        calls = _model_calls(settings, "FOOTNOTE_RERANKER", settings.rerank_seconds)
        reranker = LlmReranker(calls, stores.readings)
    stack.push_async_callback(reranker.aclose)
    return reranker


def _model_calls(settings: BotSettings, wanted_by: str, seconds: float) -> JsonCalls:
    """Return a client of the model that writes answers.

    Raises:
        SettingsError: no model is configured.
    """
    if not settings.has_model:
        raise SettingsError(f"{wanted_by}: name the model to ask by OPENAI_API_KEY or OPENAI_BASE_URL")
    from bot.llm.chat_model import JsonCalls

    key = revealed(settings.openai_api_key) or "none"
    return JsonCalls.connect(key, settings.openai_base_url, model=settings.openai_model, seconds=seconds)


@asynccontextmanager
async def open_answering(settings: Settings) -> AsyncIterator[tuple[Stores, Answering]]:
    """Yield stores and answering, for a one-shot command."""
    async with (
        open_home(settings) as stores,
        open_embedder(settings.storage, embedding_key(settings)) as embedder,
        open_index(stores) as index,
    ):
        links = await open_links(settings, stores.database)
        async with build_answering(settings, stores, embedder, index, links) as answering:
            yield stores, answering


@asynccontextmanager
async def build_answering(
    settings: Settings,
    stores: Stores,
    embedder: Embedder,
    index: Index,
    links: Links,
    *,
    fetch_pages: FetchPages | None = None,
    count: CountQuestion | None = None,
) -> AsyncIterator[Answering]:
    """Yield the answering use case; model connections are closed at exit.

    ``fetch_pages`` fetches missing approved web pages; ``count`` receives the record of every question.
    """
    bot, stored = settings.bot, settings.storage
    search = LiveIndex(index, stores.catalog, embedder.space)
    query_embedder = QueryEmbedder(embedder, stored.embed_question_seconds)
    sentences = SentenceVectorStore(stores.readings, embedder.space)
    citations = CitationService(stores.citations, links, stores.catalog)
    scale = CosineCalibration(None if stored.has_bundled_embedder else query_embedder)
    async with AsyncExitStack() as stack:
        models = open_models(bot, stack)
        retriever = open_retriever(bot, stores, search, query_embedder, sentences)
        rewriter = ModelRewriter(models[0]) if models else None
        judge = models[-1].judge() if models and bot.verify == "model" else None
        yield Answering(
            bot,
            retriever=await stack.enter_async_context(retriever),
            web=WebSearch(
                stores.web_sources,
                stores.web_pages,
                search,
                bot,
                fetch=fetch_pages,
            ),
            writing=AnswerWriter(ExtractiveAnswerer(query_embedder, sentences, scale), models, judge),
            follow_ups=FollowUpRewriter(query_embedder, rewriter, stores.notices, scale),
            translator=QuestionTranslator(models[0]) if models else None,
            judge=Judge(bot.answer_probability, scale),
            readings=stores.readings,
            catalog=stores.catalog,
            folders=ChannelFolders(stores.folders, settings.inbox),
            notes=SearchNotes(None if models else stores.records, last_rung=Rung(settings.ingestion.stop_at)),
            citations=citations,
            records=await stack.enter_async_context(writing_traces(stores.records, count)),
            reply_to_command=ChatCommands(
                stores.notices,
                has_model=bool(models),
                kept_days=math.ceil(stored.message_days),
                thread=ThreadCommands(
                    stores.memory, stores.records, citations, Subscriptions(stores.database)
                ),
                admin=AdminCommands(
                    bot.admins.replace(",", " ").split(),
                    stores.folders,
                    AuditLog(stores.database),
                    retry_failed=partial(retry_failed, stores.database),
                    erase_document=make_eraser(stores, index).erase_document,
                    shared=shared_platforms(bot),
                ),
                uploads=UploadCommands(
                    bot.admins.replace(",", " ").split(),
                    Uploads(stores.database),
                    stores.folders,
                    AuditLog(stores.database),
                    settings.inbox,
                    find_owners=partial(folder_owners, settings),
                ),
                outlines=DocumentOutlines(stores.catalog, stores.readings, citations),
            ).reply_to_message,
        )


def open_models(settings: BotSettings, stack: AsyncExitStack) -> list[ModelGenerator]:
    """Return the configured models in the order they are tried; ``stack`` closes their connections.

    Raises:
        SettingsError: the second model is incomplete, or set without a first one.
    """
    second = (settings.second_model, settings.second_model_url, settings.second_model_key)
    if not settings.has_model and not any(second):
        return []
    from bot.llm.generator import configured_models

    models = configured_models(settings)
    for model in models:
        stack.push_async_callback(model.aclose)
    return models


def build_conversation(
    settings: BotSettings,
    stores: Stores,
    answering: Answering,
    links: Links,
    messengers: Mapping[Platform, Messenger],
    *,
    memberships: Mapping[Platform, MembershipLookup],
    take_upload: IngestUpload | None = None,
) -> Conversation:
    """Return the conversation that chat platforms hand messages to; nothing runs yet."""
    is_linkless = loopback_links_warning(settings, links.public_url) is not None
    notes = PageNotes(
        Subscriptions(stores.database),
        channels=stores.channels,
        catalog=stores.catalog,
        citations=stores.citations,
        readings=stores.readings,
        links=links,
    )
    libraries = DirectLibraries(stores.channels, shared_platforms(settings))
    places = stores.channels, libraries, stores.memory, memberships
    direct = DirectChats(*places, ask_channels=settings.direct_chats == "channels")
    return Conversation(
        Inbox(stores.database),
        stores.channels,
        LinklessAnswering(answering) if is_linkless else answering,
        stores.memory,
        messengers,
        settings=settings,
        notes=LinklessNotes(notes) if is_linkless else notes,
        direct=direct,
        take_upload=take_upload,
        lease_seconds=LEASE_SECONDS,
        may_have_work=PollGate(stores.database.changes, InboxRow).should_poll,
    )


def build_uploads(settings: Settings, stores: Stores, hosts: Mapping[Platform, FileHost]) -> UploadIntake:
    """Return the intake of files uploaded in chats; ``hosts``: file hosts of the connected platforms."""
    bot = settings.bot
    quota = UploadQuota(bot.upload_files, bot.upload_mb * MEGABYTE)
    return UploadIntake(
        Uploads(stores.database),
        stores.channels,
        DirectLibraries(stores.channels, shared_platforms(bot)),
        stores.catalog,
        settings.inbox,
        rules=UploadRules(UploadPolicy(bot.uploads), quota, settings.storage.max_file_mb),
        hosts=hosts,
    )


def folder_owners(settings: Settings, channel: Channel) -> Sequence[str]:
    """Return the configured owners of a channel's folders; the map is read each time, as it may change."""
    from ingestion.folder_map.folder_map import map_owners

    owners = map_owners(settings.storage.home / MAP_NAME, settings.inbox)
    return owners.get(channel.tenant) or owners.get(channel.name) or ()


def build_chat_service(
    platform: Platform,
    settings: BotSettings,
    stores: Stores,
    conversation: Conversation,
    *,
    links: Links,
    draw: DrawFigure,
    find_owners: FindOwners = lambda _: (),
) -> ChatService:
    """Return the service that a chat platform calls.

    ``draw`` renders the figures that it uploads; ``find_owners`` returns the owners of a channel's folders.
    """
    from bot.web.link_verification import has_link_ended, preview_link

    inbox = Inbox(stores.database)
    libraries = DirectLibraries(stores.channels, shared_platforms(settings))
    citations = CitationService(stores.citations, links, stores.catalog)
    handoffs = Handoffs(
        stores.records,
        stores.feedback,
        stores.channels,
        Uploads(stores.database),
        citations,
        find_owners=find_owners,
        admins=settings.admins.replace(",", " ").split(),
    )
    return ChatService(
        platform,
        conversation,
        inbox,
        stores.channels,
        stores.notices,
        ChannelOverviews(stores.channels, libraries, stores.catalog, stores.notices),
        LinkRenewal(stores.records, stores.channels, citations),
        AnswerFeedback(inbox, stores.records, stores.feedback, offers_person=settings.ask_person),
        handoffs if settings.ask_person else None,
        preview=partial(preview_link, links=links, stores=stores),
        has_ended=partial(has_link_ended, links=links, stores=stores),
        draw=draw,
        accepts_files=UploadPolicy(settings.uploads).accepts,
    )


def build_api(
    settings: Settings,
    stores: Stores,
    answering: Answering,
    links: Links,
    uploads: UploadIntake | None = None,
) -> ApiService:
    """Return the service that programs call; ``uploads``: None refuses their files."""
    from bot.web.api.api_service import ApiService

    return ApiService(answering, answering.search, stores, links, settings, uploads=uploads)


async def build_notifier(
    settings: Settings,
    stores: Stores,
    links: Links,
    announcers: Mapping[Platform, Announcer],
) -> Notifier:
    """Return the notifier of file events for channels and admins; nothing runs yet."""
    bot, admin = settings.bot, settings.bot.admin_channel
    record_week = partial(record_digests, stores.database)
    digest = GapDigest(record_week, stores.channels, stores.records, to=bot.gap_digest)
    receipts = ReceiptBuilder(
        stores.notices,
        stores.channels,
        stores.readings,
        CitationService(stores.citations, links, stores.catalog),
        catalog=stores.catalog,
        folders=ChannelFolders(stores.folders, settings.inbox),
        libraries=DirectLibraries(stores.channels, shared_platforms(bot)),
        digest=digest,
    )
    admins = await stores.channels.ensure_tenant(TenantName(admin)) if admin else None
    summary = None
    if admins and bot.admin_summary:
        keep = partial(record_summary, stores.database, admins.id)
        prices = TokenPrices(bot.model_prompt_price, bot.model_completion_price)
        summary = UsageSummary(keep, stores.channels, stores.records, prices)
    return Notifier(
        stores.notices,
        stores.channels,
        receipts,
        routes=Routes(bot.receipts, admins, bot.gap_digest),
        announcers={name: LinklessAnnouncer(one) for name, one in announcers.items()}
        if loopback_links_warning(bot, links.public_url)
        else announcers,
        digest=digest,
        summary=summary,
        uploads=Uploads(stores.database),
        may_have_work=PollGate(stores.database.changes, NoticeRow).should_poll,
    )


async def build_outage_watch(settings: Settings, stores: Stores, readiness: Readiness) -> OutageWatch:
    """Return the watch that notifies the admin channel, if set, of lasting outages; nothing runs yet."""
    admin = settings.bot.admin_channel
    channel = await stores.channels.ensure_tenant(TenantName(admin)) if admin else None
    keep = Outages(stores.database, channel.id, process_name()).report if channel else None
    return OutageWatch(readiness, keep)


def build_reviser(stores: Stores, links: Links, messengers: Mapping[Platform, Messenger]) -> AnswerReviser:
    """Return the reviser of posted answers whose sources changed; nothing runs yet."""
    return AnswerReviser(
        AnswerSources(stores.database),
        messengers,
        channels=stores.channels,
        catalog=stores.catalog,
        citations=stores.citations,
        locator=PassageLocator(stores.readings),
        links=links,
        may_have_work=PollGate(stores.database.changes, OutboxRow).should_poll,
    )


def build_ingestion(
    settings: Settings, stores: Stores, embedder: Embedder, index: Index, pdf: PdfProcess
) -> Ingestion:
    """Return the ingestion; nothing runs yet."""
    from bot.llm.metadata_filler import metadata_filler
    from ingestion.app import Ingestion

    return Ingestion(
        settings.ingestion,
        max_file_mb=settings.storage.max_file_mb,
        database=stores.database,
        blobs=stores.blobs,
        files=stores.files,
        pdf=pdf,
        embedder=embedder,
        index=index,
        channels=stores.channels,
        passwords=stores.passwords,
        vision=_vision(settings.ingestion),
        fill_metadata=metadata_filler(settings),
        web_sources=stores.web_sources,
        web_pages=stores.web_pages,
        contact=settings.bot.public_url,
    )


def _vision(settings: IngestionSettings) -> VisionEndpoint | None:
    """Return the endpoint that describes figures, None if unset; ``SettingsError`` if it lacks a model."""
    if settings.vision_url is None:
        return None
    if settings.vision_model is None:
        raise SettingsError("FOOTNOTE_VISION_MODEL: name the vision model at FOOTNOTE_VISION_URL")
    from ingestion.reading.captioning import VisionEndpoint

    return VisionEndpoint(settings.vision_url, settings.vision_model, revealed(settings.vision_key))


@asynccontextmanager
async def open_ingestion(settings: Settings) -> AsyncIterator[tuple[Stores, Ingestion]]:
    """Yield stores and ingestion, for a one-shot command."""
    async with (
        open_home(settings) as stores,
        open_embedder(settings.storage, embedding_key(settings)) as embedder,
        open_index(stores) as index,
        open_pdf_process(stores, readers=settings.ingestion.read_workers) as pdf,
    ):
        await verify_blob_store(stores)
        yield stores, build_ingestion(settings, stores, embedder, index, pdf)
