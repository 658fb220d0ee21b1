"""Puts together how a channel is searched, as the settings choose: a part of the composition root.

From the inside out: both legs mixed, the question widened, the candidates reranked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from bot.core.ports import ChannelSearchPort, QuestionEmbedder, Retriever, SentenceVectorReader
from bot.core.ranking import Ranking
from bot.core.recency import Recency
from bot.core.reranking import Reranker, RerankingRetriever
from bot.core.retriever import HybridRetriever
from bot.core.sentence_ranking import SentenceReranker
from bot.core.widening import MultiQuery, MultiQueryMode, QueryExpansionRetriever
from bot.engines import Stores
from bot.settings import BotSettings
from storage.errors import SettingsError

if TYPE_CHECKING:
    from bot.model_calls import ModelCalls
    from bot.rerankers.cross_encoder import CrossEncoder
    from bot.rerankers.endpoint import ApiReranker
    from bot.rerankers.judgement import LlmReranker


@asynccontextmanager
async def open_retriever(
    storage: Stores, search: ChannelSearchPort, embedder: QuestionEmbedder, kept: SentenceVectorReader
) -> AsyncIterator[Retriever]:
    """The search of one home; models and connections are closed at the end.

    ``kept``: the vectors that reading gave to sentences.

    Raises:
        EngineStartError: a cross-encoder of one's own cannot be loaded.
        SettingsError: the settings do not say enough of what they choose.
    """
    settings = storage.settings.bot
    async with AsyncExitStack() as stack:
        hybrid = HybridRetriever(search, embedder, _ranking(settings), candidates=settings.candidates)
        multi_query = _open_multi_query(settings, stack)
        widening = QueryExpansionRetriever(
            hybrid, storage.glossary, multi_query, rewords=MultiQueryMode(settings.reword)
        )
        reranker = await _open_reranker(settings, kept, stack)
        yield _reranking(widening, reranker, settings) if reranker else widening


def _ranking(settings: BotSettings) -> Ranking:
    recency = Recency(settings.recency_weight, settings.recency_half_life_days)
    return Ranking(
        words_weight=settings.words_weight,
        coverage_weight=settings.coverage_weight,
        named_weight=settings.named_weight,
        document_weight=settings.document_weight,
        outdated_share=settings.outdated_share,
        recency=recency,
    )


def _reranking(retriever: Retriever, reranker: Reranker, settings: BotSettings) -> RerankingRetriever:
    is_ours = settings.reranker == "sentences"
    return RerankingRetriever(
        retriever,
        reranker,
        weight=settings.sentence_weight if is_ours else settings.rerank_weight,
        seconds=settings.rerank_seconds,
        most=settings.rerank_candidates,
    )


def _open_multi_query(settings: BotSettings, stack: AsyncExitStack) -> MultiQuery | None:
    if MultiQueryMode(settings.reword) is MultiQueryMode.NEVER:
        return None
    from bot.rewording import MultiQueryModel

    multi_query = MultiQueryModel(_model_calls(settings, "FOOTNOTE_REWORD", settings.reword_seconds))
    stack.push_async_callback(multi_query.aclose)
    return multi_query


async def _open_reranker(
    settings: BotSettings, kept: SentenceVectorReader, stack: AsyncExitStack
) -> Reranker | None:
    if settings.reranker == "none":
        return None
    if settings.reranker == "sentences":
        return SentenceReranker(kept)
    reranker: CrossEncoder | ApiReranker | LlmReranker
    if settings.reranker == "folder":
        reranker = await _open_cross_encoder(settings)
    elif settings.reranker == "endpoint":
        reranker = _open_endpoint(settings)
    else:
        reranker = _open_judgement(settings)
    stack.push_async_callback(reranker.aclose)
    return reranker


async def _open_cross_encoder(settings: BotSettings) -> CrossEncoder:
    if settings.rerank_folder is None:
        raise SettingsError("FOOTNOTE_RERANK_FOLDER: name the folder with model.onnx and tokenizer.json")
    from bot.rerankers.cross_encoder import CrossEncoder

    return await asyncio.to_thread(
        CrossEncoder.load,
        settings.rerank_folder,
        window=settings.rerank_window,
        threads=settings.rerank_threads,
    )


def _open_endpoint(settings: BotSettings) -> ApiReranker:
    if settings.rerank_url is None:
        raise SettingsError("FOOTNOTE_RERANK_URL: name the endpoint that reranks")
    from bot.rerankers.endpoint import ApiReranker

    return ApiReranker.connect(
        settings.rerank_url,
        settings.rerank_key.get_secret_value() if settings.rerank_key else None,
        model=settings.rerank_model,
        seconds=settings.rerank_seconds,
        tokens=settings.rerank_window,
    )


def _open_judgement(settings: BotSettings) -> LlmReranker:
    from bot.rerankers.judgement import LlmReranker

    return LlmReranker(_model_calls(settings, "FOOTNOTE_RERANKER", settings.rerank_seconds))


def _model_calls(settings: BotSettings, wanted_by: str, seconds: float) -> ModelCalls:
    """Calls to the model that writes answers.

    Raises:
        SettingsError: there is none.
    """
    if settings.openai_api_key is None and settings.openai_base_url is None:
        raise SettingsError(f"{wanted_by}: name the model to ask by OPENAI_API_KEY or OPENAI_BASE_URL")
    from bot.model_calls import ModelCalls

    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else "none"
    return ModelCalls.connect(key, settings.openai_base_url, model=settings.openai_model, seconds=seconds)
