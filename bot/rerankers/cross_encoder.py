"""Cross-encoder on onnxruntime: reads question and passage together, and scores how well they match.

Nogueira and Cho, "Passage Re-ranking with BERT" (2019). Works with any model that has one output, or two
classes, per pair.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # disables telemetry; read at import

import onnxruntime
from tokenizers import Encoding, Tokenizer

from bot.answer_settings import AnswerSettings
from bot.answers.retrieval.reranking import reranker_text
from bot.core.errors import RerankerError
from bot.core.models import AnalyzedQuestion, Passage
from storage.embeddings.onnx_embedder import session_options
from storage.errors import EngineStartError, SettingsError
from storage.task_group import gather_or_cancel
from storage.text.token_counts import MODEL, TOKENIZER, open_tokenizer

# Pairs of similar length that run together: few, so that all threads are busy and deadlines are met.
BATCH = 4

_NUMBERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_PADDING = ("[PAD]", "<pad>")

_T = TypeVar("_T")


class CrossEncoder:
    """Scores pairs of a question and a text."""

    def __init__(
        self, session: onnxruntime.InferenceSession, tokenizer_json: bytes, settings: AnswerSettings
    ) -> None:
        self._session = session
        self._inputs = {one.name: _NUMBERS[one.type] for one in session.get_inputs()}
        self._words = open_tokenizer(tokenizer_json)
        self._pairs = open_tokenizer(tokenizer_json)
        self._pairs.enable_truncation(settings.rerank_window, strategy="only_second")
        self._padding = _padding(self._pairs)
        self._longest_question = settings.rerank_window // 2
        self._workers = ThreadPoolExecutor(settings.rerank_threads, thread_name_prefix="reranker")

    @classmethod
    def load(cls, settings: AnswerSettings) -> CrossEncoder:
        """Load ``model.onnx`` and ``tokenizer.json`` from the folder in the settings; try them on one pair.

        Raises:
            EngineStartError: a file is missing, or together they are not a cross-encoder.
            SettingsError: no folder is named.
        """
        if (folder := settings.rerank_folder) is None:
            raise SettingsError("FOOTNOTE_RERANK_FOLDER: name the folder with model.onnx and tokenizer.json")
        try:
            model, words = ((folder / name).read_bytes() for name in (MODEL, TOKENIZER))
            session = onnxruntime.InferenceSession(model, session_options(), ["CPUExecutionProvider"])
            encoder = cls(session, words, settings)
            encoder.score("a question", ["a passage"])
        except OSError as error:
            raise EngineStartError(f"the reranker's {error.filename} cannot be read") from error
        except Exception as error:  # the exceptions of both libraries have no narrower base
            raise EngineStartError(f"the model in {folder} is not a usable cross-encoder") from error
        return encoder

    async def relevance(self, question: AnalyzedQuestion, passages: Sequence[Passage]) -> Sequence[float]:
        """Return the model's raw score of each passage.

        Raises:
            RerankerError: the model failed on a passage.
        """
        texts = [reranker_text(passage) for passage in passages]
        try:
            pairs = await self._in_thread(partial(self._encode, question.text, texts))
            order = sorted(range(len(pairs)), key=lambda at: len(pairs[at]))
            batches = [order[at : at + BATCH] for at in range(0, len(order), BATCH)]
            scored = await gather_or_cancel(
                *(self._in_thread(partial(self._run, [pairs[at] for at in batch])) for batch in batches)
            )
        except Exception as error:
            raise RerankerError("the cross-encoder failed on a passage") from error
        scores = dict(zip(order, np.concatenate(scored).tolist(), strict=True))
        return [scores[at] for at in range(len(texts))]

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the raw score of each text, computed in one batch."""
        scores: list[float] = self._run(self._encode(question, texts)).tolist()
        return scores

    async def aclose(self) -> None:
        """Let running batches finish and cancel the queued ones."""
        await asyncio.to_thread(self._workers.shutdown, wait=True, cancel_futures=True)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._workers, work)

    def _encode(self, question: str, texts: Sequence[str]) -> list[Encoding]:
        """Tokenise each pair within the window; the question is truncated to half of it."""
        pieces = self._words.encode(question, add_special_tokens=False)
        if len(pieces) > self._longest_question:
            question = question[: pieces.offsets[self._longest_question - 1][1]]
        return [self._pairs.encode(question, text) for text in texts]

    def _run(self, pairs: Sequence[Encoding]) -> npt.NDArray[np.float64]:
        """Return the model's score of each pair.

        Raises:
            ValueError: the model has neither one nor two outputs per pair.
        """
        longest, (token, number) = max(map(len, pairs)), self._padding
        for pair in pairs:
            pair.pad(longest, pad_id=number, pad_token=token)
        given = {
            "input_ids": [pair.ids for pair in pairs],
            "attention_mask": [pair.attention_mask for pair in pairs],
            "token_type_ids": [pair.type_ids for pair in pairs],
        }
        inputs = {name: np.array(given[name], dtype=kind) for name, kind in self._inputs.items()}
        rows = np.asarray(self._session.run(None, inputs)[0], dtype=np.float64).reshape(len(pairs), -1)
        if rows.shape[1] not in (1, 2):
            raise ValueError(f"expected 1 or 2 outputs per pair, got {rows.shape[1]}")
        # With two classes: the logit of the second minus that of the first.
        return rows[:, -1] - rows[:, 0] if rows.shape[1] == 2 else rows[:, 0]


def _padding(tokenizer: Tokenizer) -> tuple[str, int]:
    """Return the padding token and its id; the attention mask excludes it."""
    known = ((token, tokenizer.token_to_id(token)) for token in _PADDING)
    return next(((token, number) for token, number in known if number is not None), (_PADDING[0], 0))
