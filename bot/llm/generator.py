"""Drafts answers and writes short texts with a language model."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from bot.answer_settings import AnswerSettings
from bot.answers.generation.prompt import (
    REPLY_SCHEMA,
    ReplyFormat,
    StreamedReply,
    instructions,
    read_reply,
    user_message,
)
from bot.core.errors import ModelError
from bot.core.models import AnalyzedQuestion, Draft, Evidence, Prompt, Reply
from bot.core.ports import OnClaim
from bot.llm.chat_model import (
    ChatModel,
    ChatRequest,
    JsonCalls,
    model_timeout,
)
from bot.llm.sentence_judge import ModelSentenceJudge
from bot.settings import revealed
from storage.errors import SettingsError


class ModelGenerator:
    """Drafts answers with a model: as JSON if its endpoint supports a schema, else in marked lines."""

    def __init__(self, endpoint: ChatModel, settings: AnswerSettings) -> None:
        """Wrap an endpoint; sends nothing yet."""
        self._endpoint = endpoint
        self._seconds = settings.model_seconds
        self._tokens = settings.model_tokens
        self._key = secrets.token_bytes(16)

    @classmethod
    def connect(
        cls, api_key: str, base_url: str | None, settings: AnswerSettings, *, model: str
    ) -> ModelGenerator:
        """Return a generator that connects to an endpoint."""
        seconds = settings.model_seconds
        return cls(ChatModel.connect(api_key, base_url, model=model, seconds=seconds), settings)

    async def draft(
        self,
        question: AnalyzedQuestion,
        evidence: Sequence[Evidence],
        *,
        verified_sentences: Sequence[str] = (),
        on_claim: OnClaim | None = None,
    ) -> Draft:
        """Return a draft in the model's words with the quotes it claims.

        Raises:
            ModelUnavailable: the endpoint is down, too slow, refusing or rate-limited.
            ModelReplyUnusable: the reply was truncated, empty or malformed.
        """
        sent: list[Prompt] = []

        async def ask(reply_format: ReplyFormat) -> Draft:
            # A delimiter that no document can know, so that none can end its passage early (prompt
            # injection).
            fence = hashlib.blake2b(question.text.encode(), key=self._key, digest_size=8).hexdigest()
            turn = user_message(question, evidence, fence, verified_sentences)
            schema = REPLY_SCHEMA if reply_format is ReplyFormat.JSON else None
            asked = ChatRequest(instructions(reply_format, fence), turn, self._tokens, schema)
            sent.append(Prompt(asked.system, asked.user, schema is not None))
            on_delta = StreamedReply(reply_format, on_claim).feed if on_claim else None
            reply = await self._endpoint.reply(asked, on_delta)
            return replace(read_reply(reply.text, reply_format), usage=reply.usage)

        try:
            async with model_timeout(self._seconds):
                draft = await self._endpoint.prefer_schema(
                    partial(ask, ReplyFormat.JSON), partial(ask, ReplyFormat.MARKED)
                )
        except ModelError as error:
            error.prompts = tuple(sent)
            raise
        return replace(draft, prompts=tuple(sent))

    async def write(self, instructions: str, request: str, *, seconds: float, tokens: int) -> Reply:
        """Return a short text in the model's words.

        Raises:
            ModelUnavailable: the endpoint is down, too slow, refusing or rate-limited.
            ModelReplyUnusable: the reply was truncated or empty.
        """
        async with model_timeout(seconds):
            return await self._endpoint.reply(ChatRequest(instructions, request, tokens))

    def judge(self) -> ModelSentenceJudge:
        """Return a judge of sentences that uses the same model."""
        return ModelSentenceJudge(JsonCalls(self._endpoint, seconds=self._seconds))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()


def configured_models(settings: AnswerSettings) -> list[ModelGenerator]:
    """Return the configured models, in the order in which they are asked.

    Raises:
        SettingsError: the second model is incomplete, or there is no first one.
    """
    second, url, key = settings.second_model, settings.second_model_url, settings.second_model_key
    if second is None and (url or key):
        raise SettingsError("FOOTNOTE_SECOND_MODEL: name the model at the second endpoint")
    if second and not settings.has_model:
        raise SettingsError(
            "FOOTNOTE_SECOND_MODEL needs a first model: set OPENAI_API_KEY or OPENAI_BASE_URL"
        )
    named = [(settings.openai_model, settings.openai_base_url, settings.openai_api_key)]
    if second:
        # Without a URL the second model is at the first endpoint, whose key is sent nowhere else.
        own = (url, key) if url else (settings.openai_base_url, key or settings.openai_api_key)
        named.append((second, *own))
    return [
        ModelGenerator.connect(revealed(key) or "none", url, settings, model=model)
        for model, url, key in named
    ]
