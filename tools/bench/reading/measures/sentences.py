"""Sentence boxes: whether what we would mark on the page is where the sentence stands, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random
from typing import NamedTuple

from storage.models import Chunk, PlacedWord
from storage.text.word_boxes import rectangles
from tools.bench.reading.seen import Area, squeezed
from tools.bench.reading.tally import Tally

SAMPLE = 400
# Words of a sentence that is worth marking.
SHORTEST = 5


class PrintedWord(NamedTuple):
    """A word where the bare library sees it."""

    box: Area
    text: str
    # Its block, and its line there.
    line: tuple[int, int]


# File -> page -> its words.
Words = Mapping[str, Mapping[int, Sequence[PrintedWord]]]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence on a page, and the words it is made of."""

    file: str
    page: int
    words: Sequence[PrintedWord]

    @property
    def text(self) -> str:
        """The words with blanks between them."""
        return " ".join(word.text for word in self.words)


def sample(printed: Words) -> list[Sentence]:
    """Return the same sentences at every run; one that a page has twice is left out.

    So are drawn pages: what stands side by side in a file whose parts are shuffled is no sentence.
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
    """Words of a block up to a full stop; the dots of a table of contents stop nothing worth marking."""
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
    """What identifies a text however it is hyphenated."""
    return "".join(filter(str.isalnum, squeezed(text)))


def count_sentences(
    asked: Sequence[Sentence], printed: Words, chunks: Mapping[str, Sequence[Chunk]]
) -> Tally:
    """``right`` of ``asked`` sentences."""
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
    """What we would mark: the lines of the words that the sentence has in the chunks."""
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


def _by_chunk(placed: Sequence[tuple[Chunk, PlacedWord]]) -> Iterator[tuple[Chunk, list[PlacedWord]]]:
    for _, group in groupby(placed, key=lambda one: one[0].ordinal):
        parts = list(group)
        yield parts[0][0], [word for _, word in parts]


def _marked(chunk: Chunk, words: Sequence[PlacedWord], page: int) -> Sequence[Sequence[float]]:
    return rectangles(chunk.words, words[0].start, words[-1].end).get(page, [])


def _fault(sentence: Sentence, boxes: Sequence[Area], printed: Sequence[PrintedWord]) -> str:
    """What is wrong with the boxes; '' when nothing is."""
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
