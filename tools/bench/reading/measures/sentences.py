"""Sentence boxes: whether a highlight would cover its sentence and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random
from typing import NamedTuple

from storage.models import Chunk, WordBox
from storage.text.word_boxes import bounding_boxes
from tools.bench.reading.findings import Area, squeezed
from tools.bench.reading.tally import Tally

SAMPLE = 400
# Minimum words of a sentence that is worth highlighting.
SHORTEST = 5


class PrintedWord(NamedTuple):
    """A word with its box in the bare library."""

    box: Area
    text: str
    # (block, line in the block).
    line: tuple[int, int]


# File -> page -> its words.
Words = Mapping[str, Mapping[int, Sequence[PrintedWord]]]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence on a page, and its words."""

    file: str
    page: int
    words: Sequence[PrintedWord]

    @property
    def text(self) -> str:
        """Words joined by spaces."""
        return " ".join(word.text for word in self.words)


def sample(printed: Words) -> list[Sentence]:
    """Return a reproducible sample of sentences that occur once on their page.

    Generated papers are left out: neighbours in a shuffled file are no sentences.
    """
    found = [
        Sentence(name, page, words)
        for name, pages in printed.items()
        if not name.startswith("papers/")
        for page, all_words in pages.items()
        for words in _sentences(all_words)
        if _letters(_joined(all_words)).count(_letters(_joined(words))) == 1
    ]
    return Random(0).sample(found, min(SAMPLE, len(found)))


def _sentences(words: Sequence[PrintedWord]) -> Iterator[list[PrintedWord]]:
    """Yield the words of a block up to each full stop, without dot leaders and short sentences."""
    for _, block in groupby(words, key=lambda word: word.line[0]):
        sentence: list[PrintedWord] = []
        for word in block:
            sentence.append(word)
            if word.text[-1:] in ".?!":
                yield from [sentence] if len(sentence) >= SHORTEST and _letters(word.text) else []
                sentence = []


def _joined(words: Sequence[PrintedWord]) -> str:
    return "".join(word.text for word in words)


def _letters(text: str) -> str:
    """Return the letters and digits of a text, which are independent of hyphenation."""
    return "".join(filter(str.isalnum, squeezed(text)))


def count_sentences(
    asked: Sequence[Sentence], printed: Words, chunks: Mapping[str, Sequence[Chunk]]
) -> Tally:
    """Count ``right`` of ``asked`` sentences."""
    tally = Tally()
    for sentence in asked:
        boxes = _boxes(sentence, chunks[sentence.file])
        fault = _fault(sentence, boxes, printed[sentence.file][sentence.page])
        tally.counts["asked"] += 1
        tally.counts["right"] += not fault
        if fault:
            tally.wrong.append(f"{sentence.file} p. {sentence.page}: {fault}: {sentence.text[:100]!r}")
    return tally


def _boxes(sentence: Sentence, chunks: Sequence[Chunk]) -> list[Area]:
    """Return the boxes that we would highlight: the lines of the sentence's words in the chunks."""
    placed = [(chunk, word) for chunk in chunks for word in chunk.words if word.page == sentence.page]
    starts, whole = [], ""
    for chunk, word in placed:
        starts.append(len(whole))
        whole += _letters(chunk.text[word.start : word.end])
    wanted = _letters(sentence.text)
    begin = whole.find(wanted)
    if begin < 0:
        return []
    own = [one for one, start in zip(placed, starts, strict=True) if begin <= start < begin + len(wanted)]
    return [Area(*box) for chunk, words in _by_chunk(own) for box in _marked(chunk, words, sentence.page)]


def _by_chunk(placed: Sequence[tuple[Chunk, WordBox]]) -> Iterator[tuple[Chunk, list[WordBox]]]:
    for _, group in groupby(placed, key=lambda one: one[0].ordinal):
        parts = list(group)
        yield parts[0][0], [word for _, word in parts]


def _marked(chunk: Chunk, words: Sequence[WordBox], page: int) -> Sequence[Sequence[float]]:
    return bounding_boxes(chunk.words, words[0].start, words[-1].end).get(page, [])


def _fault(sentence: Sentence, boxes: Sequence[Area], printed: Sequence[PrintedWord]) -> str:
    """Return what is wrong with the boxes; '' if nothing is."""
    if not boxes:
        return "not found"
    if not all(_is_covered(word, boxes) for word in sentence.words):
        return "a word is left out"
    lines = {word.line for word in sentence.words}
    foreign = [word for word in printed if word.line not in lines and _is_covered(word, boxes)]
    return f"covers {foreign[0].text!r} of another line" if foreign else ""


def _is_covered(word: PrintedWord, boxes: Sequence[Area]) -> bool:
    x, y = (word.box.x0 + word.box.x1) / 2, (word.box.y0 + word.box.y1) / 2
    return any(box.covers(x, y) for box in boxes)
