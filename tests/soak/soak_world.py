"""The wish: folders of PDFs that a driver keeps changing, and what should answer for each.

Every line of a paper holds two made-up words: one that all versions of the document share, and one
that only this version has. So every chunk tells which content of which document it is of.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field
from pathlib import Path

from paper import pdf

CONSONANTS = "bcdfghjklmnpqrtv"
WORDS = "marzipan lantern harbour velvet granite orchard compass saffron thimble walnut copper meadow".split()
FEWEST = 4
"""Files that a folder keeps: the last ones are never taken, because that would ask an admin."""
LARGE = 9
"""Pages of a paper that fills several batches of vectors."""


@dataclass(frozen=True, slots=True)
class Paper:
    """One content."""

    word: str
    """In every chunk of every version of the document."""
    version: str
    """In every chunk of this content alone."""
    data: bytes

    @property
    def sha256(self) -> str:
        """Name of the content."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass
class World:
    """Channel folders and the papers in them; ``seed`` decides everything that happens."""

    inbox: Path
    channels: tuple[str, ...]
    seed: int
    papers: dict[str, dict[str, Paper]] = field(default_factory=dict)
    """By channel and file."""
    taken: list[tuple[str, str, Paper]] = field(default_factory=list)
    """Files that were taken away: they may be put back."""
    versions: dict[str, Paper] = field(default_factory=dict)
    """Every content ever, by its version's word."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self._words = 0
        self.papers = {channel: {} for channel in self.channels}
        for channel in self.channels:
            (self.inbox / channel).mkdir(parents=True, exist_ok=True)

    def add(self, pages: int | None = None) -> str:
        """A new file in one channel, or the same bytes in all of them; returns its word."""
        paper = self._paper(self._word(), pages or self.random.choice((1, 1, 2, 3)))
        everywhere = self.random.random() < 0.3
        for channel in self.channels if everywhere else [self.random.choice(self.channels)]:
            self._place(channel, f"{paper.word}.pdf", paper)
        return paper.word

    def replace(self, channel: str, file: str) -> None:
        """New content under an old name; now and then the content it had once before."""
        old = self.papers[channel][file]
        earlier = [one for one in self.versions.values() if one.word == old.word and one != old]
        again = earlier and self.random.random() < 0.2
        self._place(channel, file, self.random.choice(earlier) if again else self._paper(old.word, None))

    def rename(self, channel: str, file: str) -> None:
        """The same file under a new name."""
        paper, new = self.papers[channel].pop(file), f"{self._word()}.pdf"
        (self.inbox / channel / file).rename(self.inbox / channel / new)
        self.papers[channel][new] = paper

    def take(self, channel: str, file: str) -> None:
        """Take a file away."""
        self.taken.append((channel, file, self.papers[channel].pop(file)))
        (self.inbox / channel / file).unlink()

    def put_back(self) -> None:
        """Bring back what was taken away last."""
        channel, file, paper = self.taken.pop()
        self._place(channel, file, paper)

    def _place(self, channel: str, file: str, paper: Paper) -> None:
        """In one step, as a move into the folder is."""
        draft = self.inbox.parent / f".{file}"
        draft.write_bytes(paper.data)
        draft.replace(self.inbox / channel / file)
        self.papers[channel][file] = paper
        self.versions[paper.version] = paper

    def _paper(self, word: str, pages: int | None) -> Paper:
        version = self._word()
        texts = [self._page(word, version) for _ in range(pages or self.random.choice((1, 1, 2, 2, 3)))]
        return Paper(word, version, pdf(*texts))

    def _page(self, word: str, version: str) -> str:
        lines = [
            f"{word} {version} {' '.join(self.random.choices(WORDS, k=5))} {word} {version}."
            for _ in range(14)
        ]
        return "\n".join(lines)

    def _word(self) -> str:
        """A word that no analyzer knows or shortens."""
        self._words += 1
        digits = "".join(CONSONANTS[int(digit, 16)] for digit in f"{self.seed % 4096:03x}{self._words:03x}")
        return f"zq{digits}zq"
