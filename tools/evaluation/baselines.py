"""Baselines: simple searches of the same pages by BM25, by vectors, and by reciprocal rank fusion of both."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import pymupdf

from storage.embeddings.onnx_embedder import BundledEmbedder
from tools.evaluation.asking import Asked, channels_of
from tools.evaluation.golden import Page
from tools.evaluation.replies import Reply

NAMES = ("BM25", "vectors", "rank fusion")
K1, B = 1.2, 0.75
RANK_CONSTANT = 60
FUSED, FOUND = 100, 20
WINDOW_WORDS, WINDOW_STEP = 180, 150

_WORD = re.compile(r"\w+")


class Baselines:
    """Pages of every channel, searched by a minimal program."""

    def __init__(self, files: Sequence[Path]) -> None:
        """Read and embed all pages."""
        self._embedder = BundledEmbedder.load(None, 2)
        # Text by page, without empty pages.
        self.texts = {(file.name, number): text for file in files for number, text in _texts(file)}
        self._vectors = {page: self._embedder.embed(_windows(text)) for page, text in self.texts.items()}
        self._channels = {
            channel: _Pages({page: text for page, text in self.texts.items() if page[0] in names})
            for channel, names in channels_of(files).items()
        }

    def search(self, asked: Sequence[Asked]) -> dict[str, list[Reply]]:
        """Return baseline -> its replies to the questions; earlier turns are part of a question."""
        found: dict[str, list[Reply]] = {name: [] for name in NAMES}
        for one in asked:
            question = " ".join([*(turn for turn, _ in one.golden.history), one.golden.text])
            for name, pages in zip(NAMES, self._rankings(one.channel, question), strict=True):
                found[name].append(Reply(tuple(pages[:FOUND])))
        return found

    def _rankings(self, channel: str, question: str) -> tuple[list[Page], list[Page], list[Page]]:
        pages, vector = self._channels[channel], self._embedder.embed([question])[0]
        words = pages.by_words(question)
        nearness = {page: float((self._vectors[page] @ vector).max()) for page in pages.texts}
        vectors = _best(nearness)
        return words, vectors, _fused([words, vectors])


class _Pages:
    """Pages of one channel, searchable by words."""

    def __init__(self, texts: Mapping[Page, str]) -> None:
        self.texts = texts

    @cached_property
    def _counts(self) -> dict[Page, Counter[str]]:
        return {page: Counter(_words(text)) for page, text in self.texts.items()}

    @cached_property
    def _holding(self) -> Counter[str]:
        return Counter(word for counts in self._counts.values() for word in counts)

    def by_words(self, question: str) -> list[Page]:
        """Rank pages by BM25 with the usual constants.

        Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009).
        """
        average = sum(counts.total() for counts in self._counts.values()) / len(self._counts) or 1.0
        idf = {word: self._idf(word) for word in _words(question)}
        scores = {page: _bm25(idf, counts, average) for page, counts in self._counts.items()}
        return _best({page: score for page, score in scores.items() if score > 0})

    def _idf(self, word: str) -> float:
        held = self._holding[word]
        return math.log(1 + (len(self._counts) - held + 0.5) / (held + 0.5))


def _texts(file: Path) -> list[tuple[int, str]]:
    """Return (number, text) of the pages with text; none for a locked file."""
    with pymupdf.open(file) as document:
        if document.needs_pass:
            return []
        texts = [(number, page.get_text()) for number, page in enumerate(document, start=1)]
    return [(number, text) for number, text in texts if text.strip()]


def _windows(text: str) -> list[str]:
    """Return overlapping windows, each short enough for the embedding model."""
    words = text.split()
    starts = range(0, max(len(words) - WINDOW_WORDS + WINDOW_STEP, 1), WINDOW_STEP)
    return [" ".join(words[start : start + WINDOW_WORDS]) for start in starts]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _bm25(idf: Mapping[str, float], counts: Counter[str], average: float) -> float:
    slope = K1 * (1 - B + B * counts.total() / average)
    return sum(weight * counts[word] * (K1 + 1) / (counts[word] + slope) for word, weight in idf.items())


def _best(scores: Mapping[Page, float]) -> list[Page]:
    return sorted(scores, key=lambda page: (-scores[page], page))


def _fused(rankings: Iterable[Sequence[Page]]) -> list[Page]:
    """Merge rankings by reciprocal rank fusion.

    Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion" (2009).
    """
    scores: dict[Page, float] = {}
    for ranking in rankings:
        for rank, page in enumerate(ranking[:FUSED], start=1):
            scores[page] = scores.get(page, 0.0) + 1 / (RANK_CONSTANT + rank)
    return _best(scores)
