"""Reranker behind an HTTP endpoint, in either of two common formats; which one is found out by trying.

One is Cohere's, which Jina, Voyage and vLLM share, the other that of Text Embeddings Inference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import aiohttp

from bot.answer_settings import AnswerSettings
from bot.answers.retrieval.reranking import reranker_text
from bot.core.errors import RerankerError
from bot.core.models import AnalyzedQuestion, Passage
from bot.settings import revealed
from storage.errors import SettingsError
from storage.text.token_counts import truncate_tokens

# Statuses with which an endpoint may refuse an unknown format.
OTHER_FORM = (400, 415, 422)

_CHECK = "check FOOTNOTE_RERANK_URL, FOOTNOTE_RERANK_MODEL and FOOTNOTE_RERANK_KEY"


class ApiReranker:
    """Posts question and passages, and reads one score per passage."""

    def __init__(self, settings: AnswerSettings) -> None:
        """Set the endpoint; sends nothing yet. Needs a running event loop.

        Raises:
            SettingsError: no endpoint is named.
        """
        if settings.rerank_url is None:
            raise SettingsError("FOOTNOTE_RERANK_URL: name the endpoint that reranks")
        key = revealed(settings.rerank_key)
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=aiohttp.ClientTimeout(total=settings.rerank_seconds),
            trust_env=True,
        )
        self._url = settings.rerank_url
        self._model = settings.rerank_model
        self._tokens = settings.rerank_window
        self._takes_documents = True

    async def relevance(self, question: AnalyzedQuestion, passages: Sequence[Passage]) -> Sequence[float]:
        """Return the endpoint's score of each passage.

        Raises:
            RerankerError: it is down, too slow or refusing, or sent no valid scores.
        """
        texts = [truncate_tokens(reranker_text(passage), self._tokens) or " " for passage in passages]
        try:
            reply = await self._ask(question.text, texts)
        except aiohttp.ClientResponseError as error:
            raise RerankerError(
                f"the reranking endpoint refuses (status {error.status}): {_CHECK}"
            ) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise RerankerError("reranking endpoint unreachable or timed out") from error
        except ValueError as error:
            raise RerankerError(f"the reranking endpoint sent no JSON: {_CHECK}") from error
        return _scores(reply, len(texts))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def _ask(self, question: str, texts: Sequence[str]) -> Any:
        """Post in the format that worked last; if it is refused, switch to the other one."""
        try:
            return await self._post(self._body(question, texts))
        except aiohttp.ClientResponseError as error:
            if error.status not in OTHER_FORM:
                raise
        self._takes_documents = not self._takes_documents
        return await self._post(self._body(question, texts))

    def _body(self, question: str, texts: Sequence[str]) -> dict[str, Any]:
        named = {"model": self._model} if self._model else {}
        if self._takes_documents:
            return {**named, "query": question, "documents": texts, "top_n": len(texts)}
        return {**named, "query": question, "texts": texts, "truncate": True}

    async def _post(self, body: dict[str, Any]) -> Any:
        async with self._session.post(self._url, json=body, allow_redirects=False) as response:
            if response.status != 200:
                raise aiohttp.ClientResponseError(
                    response.request_info, response.history, status=response.status
                )
            return await response.json(content_type=None)


def _scores(reply: Any, expected: int) -> list[float]:
    """Return the scores in the order of their passages.

    Raises:
        RerankerError: the reply does not have exactly one score per passage.
    """
    try:
        results = reply if isinstance(reply, list) else reply.get("results") or reply["data"]
        scores = {
            int(one["index"]): float(one["relevance_score"] if "relevance_score" in one else one["score"])
            for one in results
        }
        if len(results) != expected:
            raise ValueError("too few or too many")
        return [scores[index] for index in range(expected)]
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise RerankerError(f"reranking endpoint did not return one score per passage: {_CHECK}") from error
