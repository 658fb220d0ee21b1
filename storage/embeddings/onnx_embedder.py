"""Bundled embedding model: MiniLM (all-MiniLM-L6-v2, int8) on onnxruntime.

Mean pooling and L2 normalisation as in Reimers and Gurevych, "Sentence-BERT" (2019), so that a dot product
is the cosine. Texts run one by one, because on a few cores padded batches cost more than they save.
Concurrent calls are interleaved, so that a question does not wait for documents.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read at import time; onnxruntime would send telemetry

import onnxruntime
from tokenizers import Tokenizer

from storage.embeddings.base import space_of
from storage.errors import EngineStartError
from storage.text.token_counts import MODEL, TOKENIZER, PieceCounter, bundled, open_tokenizer

Vector = npt.NDArray[np.float32]

# Sequence length in word pieces that the model was trained on, including [CLS] and [SEP].
WINDOW = 256

BATCH = 16


class BundledEmbedder:
    """Sentence encoder, see ``Embedder``. Thread-safe.

    Attributes:
        id: model identity, from model, tokenizer and window; vectors of different ids must not be compared.
        space: the id in a form that every index accepts as a vector name.
        dimensions: vector dimension.
        batch: preferred batch size in texts: small, so that other calls can interleave.
        window: word pieces of a text that are encoded, including the special ones.
        tokenizer: the tokenizer file.
    """

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        tokenizer: Tokenizer,
        pieces: PieceCounter,
        identity: str,
        threads: int,
    ) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._threads = threads
        self._workers = ThreadPoolExecutor(threads + 1, thread_name_prefix="embedder")
        self.id = identity
        self.space = space_of(identity)
        self.dimensions = int(session.get_outputs()[0].shape[-1])
        self._takes = {one.name for one in session.get_inputs()}
        self.batch = BATCH
        self.window = WINDOW
        self.tokenizer = pieces.file
        self._pieces = pieces

    @classmethod
    def load(cls, folder: Path | None, threads: int) -> BundledEmbedder:
        """Load ``model.onnx`` and ``tokenizer.json`` from ``folder``, by default the bundled ones.

        Raises:
            IncompleteInstallation: a bundled file is missing.
            EngineStartError: a file in ``folder`` is missing or invalid.
        """
        places = [folder / name if folder else bundled(name) for name in (MODEL, TOKENIZER)]
        try:
            model, words = (place.read_bytes() for place in places)
            session = onnxruntime.InferenceSession(model, session_options(), ["CPUExecutionProvider"])
            tokenizer = open_tokenizer(words)
        except OSError as error:
            raise EngineStartError(f"the embedder's {error.filename} cannot be read") from error
        except Exception as error:  # both libraries raise exceptions without a common base
            raise EngineStartError(f"the embedder in {places[0].parent} cannot be loaded") from error
        return cls(session, tokenizer, PieceCounter(places[1]), _identity(model, words), threads)

    def count(self, text: str) -> int:
        """Return the number of word pieces of ``text``, including the special ones."""
        return self._pieces(text)

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return L2-normalised vectors, shape (texts, dimensions); texts are truncated to the window."""
        return self._stack([self._infer(text) for text in texts])

    async def aembed(self, texts: Sequence[str]) -> Vector:
        """Embed without blocking the event loop, on up to ``threads`` threads.

        A call never queues more than ``threads`` texts, and the pool has one spare worker: another call
        starts within the time of one text (about 50 ms), however many texts the first one has.
        """
        vectors: list[Vector] = [np.empty(0, np.float32)] * len(texts)
        waiting = iter(enumerate(texts))
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._threads, len(texts))):
                group.create_task(self._take_turns(waiting, vectors))
        return self._stack(vectors)

    async def _take_turns(self, waiting: Iterator[tuple[int, str]], vectors: list[Vector]) -> None:
        loop = asyncio.get_running_loop()
        for index, text in waiting:
            vectors[index] = await loop.run_in_executor(self._workers, self._infer, text)

    def _stack(self, vectors: Sequence[Vector]) -> Vector:
        return np.stack(vectors) if vectors else np.zeros((0, self.dimensions), np.float32)

    def _infer(self, text: str) -> Vector:
        pieces = self._tokenizer.encode(text).ids
        if len(pieces) > WINDOW:
            pieces = [*pieces[: WINDOW - 1], pieces[-1]]
        ids = np.array([pieces], dtype=np.int64)
        known = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        inputs = {name: values for name, values in known.items() if name in self._takes}
        states: Vector = self._session.run(None, inputs)[0][0]
        mean = states.mean(axis=0)
        vector: Vector = (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)
        return vector

    def close(self) -> None:
        """Finish the running texts and cancel the queued ones."""
        self._workers.shutdown(wait=True, cancel_futures=True)

    async def aclose(self) -> None:
        """Close without blocking the event loop."""
        await asyncio.to_thread(self.close)


def session_options() -> onnxruntime.SessionOptions:
    """Return options with one thread per text and no arena: half the memory, all cores still busy."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    return options


def _identity(model: bytes, words: bytes) -> str:
    """Return a hash of model, tokenizer and window: truncating elsewhere changes the vectors, too."""
    hasher = hashlib.sha256(str(WINDOW).encode())
    for content in (model, words):
        hasher.update(hashlib.sha256(content).digest())
    return f"onnx-{hasher.hexdigest()[:16]}"
