"""Turns texts into vectors with the bundled MiniLM (all-MiniLM-L6-v2, int8) on onnxruntime.

Reimers and Gurevych, "Sentence-BERT" (2019): mean of the token states, then length one, so that a
dot product is the cosine. Texts run one by one: padded batches cost more than they save on a few
cores. Calls take turns, so that a question never waits for the documents embedded beside it.
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

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read at the import: it would call its maker

import onnxruntime
from tokenizers import Tokenizer

from storage.embeddings.base import space_of
from storage.errors import EngineStartError
from storage.text.token_counts import MODEL, TOKENIZER, PieceCounter, bundled, open_tokenizer

Vector = npt.NDArray[np.float32]

# Word pieces that the model was trained on, its two special ones included.
WINDOW = 256

BATCH = 16


class BundledEmbedder:
    """A sentence encoder: texts in, vectors of length one out; any thread may use it.

    Attributes:
        id: changes with the model, its tokenizer and its window; vectors of two ids never compare.
        space: the id as a name that any index takes for its vectors.
        dimensions: length of a vector.
        batch: texts that are best given at once: few, so that others can come between.
        window: word pieces of a text that are seen, the special ones included.
        tokenizer: the file that says how a text is cut into pieces.
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
    def load(cls, folder: Path | None = None, threads: int = 2) -> BundledEmbedder:
        """Load ``model.onnx`` and ``tokenizer.json`` of ``folder``; None: the bundled ones.

        Raises:
            IncompleteInstallation: a bundled file is missing.
            EngineStartError: a file of ``folder`` is missing, or one is not what it should be.
        """
        places = [folder / name if folder else bundled(name) for name in (MODEL, TOKENIZER)]
        try:
            model, words = (place.read_bytes() for place in places)
            session = onnxruntime.InferenceSession(model, session_options(), ["CPUExecutionProvider"])
            tokenizer = open_tokenizer(words)
        except OSError as error:
            raise EngineStartError(f"the embedder's {error.filename} cannot be read") from error
        except Exception as error:  # both libraries raise classes of their own that share no other base
            raise EngineStartError(f"the embedder in {places[0].parent} cannot be loaded") from error
        return cls(session, tokenizer, PieceCounter(places[1]), _identity(model, words), threads)

    def count(self, text: str) -> int:
        """Word pieces of ``text``, the special ones included."""
        return self._pieces(text)

    def embed(self, texts: Sequence[str]) -> Vector:
        """Vectors of length one, shape (len(texts), dimensions); what exceeds the window is not seen."""
        return self._stack([self._infer(text) for text in texts])

    async def aembed(self, texts: Sequence[str]) -> Vector:
        """Return the same without holding up the loop, on as many threads as were allowed.

        One call never queues more than ``threads`` texts, and one worker is spare: another call
        starts within one text's time (about 50 ms), however many texts the first one brought.
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
        """Let the running texts end and drop what waits."""
        self._workers.shutdown(wait=True, cancel_futures=True)

    async def aclose(self) -> None:
        """The same without holding up the loop."""
        await asyncio.to_thread(self.close)


def session_options() -> onnxruntime.SessionOptions:
    """One thread per text and no arena: half the memory, and all cores busy all the same."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    return options


def _identity(model: bytes, words: bytes) -> str:
    """Return the window counts too: a text that is cut elsewhere is another text."""
    hasher = hashlib.sha256(str(WINDOW).encode())
    for content in (model, words):
        hasher.update(hashlib.sha256(content).digest())
    return f"onnx-{hasher.hexdigest()[:16]}"
