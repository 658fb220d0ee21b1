"""Row ``embed``: embedding as in a full reading, compared to the bare ONNX session on the same arrays."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnxruntime

from storage.embeddings.onnx_embedder import BATCH, WINDOW, BundledEmbedder
from storage.embeddings.vector_cache import VectorCache
from storage.sql.database import Database
from storage.text.token_counts import MODEL, bundled, open_tokenizer
from tools.bench.corpus import Prose
from tools.bench.figures import Figure

THREADS, DOCUMENTS, ROUNDS = 2, 4, 5


def bench_embed(work: Path) -> list[Figure]:
    """Alternate between both on the same texts."""
    return asyncio.run(_bench(work))


async def _bench(work: Path) -> list[Figure]:
    database = await Database.open(f"sqlite:///{work / 'embed.db'}")
    async with aclosing(database), aclosing(BundledEmbedder.load(None, THREADS)) as embedder:
        bare = _session()
        ratios, speeds, raws = [], [], []
        for round_number in range(ROUNDS):
            documents = [_texts(round_number * DOCUMENTS + number) for number in range(DOCUMENTS)]
            count = sum(map(len, documents))
            ours = await _ours(VectorCache(database), embedder, documents)
            raw = _raw(bare, _arrays(embedder.tokenizer, documents))
            ratios.append(raw / ours)
            speeds.append(count / ours)
            raws.append(count / raw)
            print(
                f"    round {round_number + 1}: {count / ours:.1f} chunks/s, bare {count / raw:.1f}",
                flush=True,
            )
    ratio = median(ratios)
    return [
        Figure("embedding, tokenizing and storing", ">= 0.9 x", f"{median(speeds):.1f} chunks/s",
               f"bare session {median(raws):.1f} chunks/s", f"{ratio:.2f} x", ratio >= 0.9)
    ]  # fmt: skip


def _texts(seed: int) -> list[str]:
    """Return two batches of chunks of typical length."""
    prose = Prose(10_000_000 + seed)
    return [" ".join(prose.paragraph() for _ in range(2)) for _ in range(2 * BATCH)]


async def _ours(cache: VectorCache, embedder: BundledEmbedder, documents: list[list[str]]) -> float:
    async def embed(texts: list[str]) -> None:
        for start in range(0, len(texts), BATCH):
            await cache.embed(embedder, texts[start : start + BATCH])

    started = time.perf_counter()
    await asyncio.gather(*map(embed, documents))
    return time.perf_counter() - started


def _arrays(tokenizer: Path, documents: list[list[str]]) -> list[dict[str, Any]]:
    cutter, arrays = open_tokenizer(tokenizer.read_bytes()), []
    for text in (text for texts in documents for text in texts):
        pieces = cutter.encode(text).ids
        pieces = pieces if len(pieces) <= WINDOW else [*pieces[: WINDOW - 1], pieces[-1]]
        ids = np.array([pieces], dtype=np.int64)
        arrays.append({"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": 0 * ids})
    return arrays


def _raw(session: onnxruntime.InferenceSession, arrays: list[dict[str, Any]]) -> float:
    with ThreadPoolExecutor(THREADS) as threads:
        started = time.perf_counter()
        for _ in threads.map(lambda inputs: session.run(None, inputs), arrays):
            pass
        return time.perf_counter() - started


def _session() -> onnxruntime.InferenceSession:
    """Return a session with the options of the bundled embedder."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(bundled(MODEL).read_bytes(), options, ["CPUExecutionProvider"])
