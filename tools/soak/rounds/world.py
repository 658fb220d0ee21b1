"""The wish: folders of PDFs that a driver keeps changing, and what should answer for each.

Every line of a paper holds two made-up words: one that all versions of the document share, and one
that only this version has. So every chunk tells which content of which document it is of.
"""

from __future__ import annotations

import hashlib
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from engines.support.shares import ServedFolder
from samples.paper import pdf

CONSONANTS = "bcdfghjklmnpqrtv"
WORDS = "marzipan lantern harbour velvet granite orchard compass saffron thimble walnut copper meadow".split()
# Files that a folder keeps: the last ones are never taken, because that would ask an admin.
FEWEST = 2
# Lines of a paper that fills several batches of vectors, and more than one write to the index.
LARGE = 108
# Of other papers; each line is about a chunk.
LINES = (6, 6, 12, 18, 42)
# Most lines of a page. Few pages, as looking at one takes longer than all that a kill could meet.
PAGE = 36
# Less than the time between two looks.
BLINK_SECONDS = 0.15


@dataclass(frozen=True, slots=True)
class Paper:
    """One content."""

    # In every chunk of every version of the document.
    word: str
    # In every chunk of this content alone.
    version: str
    data: bytes

    @property
    def sha256(self) -> str:
        """Name of the content."""
        return hashlib.sha256(self.data).hexdigest()


LIBRARY = "library"


@dataclass
class World:
    """A folder for each channel, a library for all of them, and the papers in them.

    ``seed`` decides everything that happens.
    """

    home: Path
    channels: tuple[str, ...]
    seed: int
    # By place, which is a channel or the library, and file.
    papers: dict[str, dict[str, Paper]] = field(default_factory=dict)
    # Files that were taken away: they may be put back.
    taken: list[tuple[str, str, Paper]] = field(default_factory=list)
    # Every content ever, by its version's word.
    versions: dict[str, Paper] = field(default_factory=dict)
    # Where the library lies; None: beside the inbox.
    share: ServedFolder | None = None

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self._words = 0
        self.papers = {place: {} for place in (*self.channels, LIBRARY)}
        for place in self.papers:
            self.folder(place).mkdir(parents=True, exist_ok=True)
        location = self.share.location if self.share else self.folder(LIBRARY)
        (self.home / "folders.toml").write_text(
            f"[library.shared]\nchannels = {list(self.channels)}\n"
            f'[[library.shared.folder]]\nlocation = "{location}"\n'
        )

    def feeds(self, place: str) -> tuple[str, ...]:
        """Return the channels that a place's papers answer in."""
        return self.channels if place == LIBRARY else (place,)

    @property
    def files(self) -> int:
        """How many there are in all places."""
        return sum(map(len, self.papers.values()))

    def wanted(self, channel: str) -> dict[str, Paper]:
        """Return everything that should answer in a channel, by file."""
        return {**self.papers[channel], **self.papers[LIBRARY]}

    def add(self, lines: int | None = None) -> None:
        """A new file in one place, or the same bytes in all channels."""
        paper = self._paper(self._word(), lines)
        places = self.channels if self.random.random() < 0.2 else [self.random.choice(list(self.papers))]
        for place in places:
            self._place(place, f"{paper.word}.pdf", paper)

    def fill(self) -> None:
        """What is there before the first kill: as many files in each place as it always keeps."""
        for place in self.papers:
            for _ in range(FEWEST):
                paper = self._paper(self._word(), LINES[0])
                self._place(place, f"{paper.word}.pdf", paper)

    def replace(self, place: str, file: str) -> None:
        """New content under an old name; now and then the content it had once before."""
        old = self.papers[place][file]
        earlier = [one for one in self.versions.values() if one.word == old.word and one != old]
        again = earlier and self.random.random() < 0.2
        self._place(place, file, self.random.choice(earlier) if again else self._paper(old.word, None))

    def rename(self, place: str, file: str) -> None:
        """The same file under a new name."""
        paper, new = self.papers[place].pop(file), f"{self._word()}.pdf"
        (self.folder(place) / file).rename(self.folder(place) / new)
        self.papers[place][new] = paper

    def blink(self, place: str, file: str) -> float:
        """Return the same file away and back, as some programs save; returns for how long, in seconds."""
        path, away, began = self.folder(place) / file, self.home / f".{file}", time.monotonic()
        path.rename(away)
        time.sleep(BLINK_SECONDS)  # nobody asks meanwhile
        away.rename(path)
        return time.monotonic() - began

    def take(self, place: str, file: str) -> None:
        """Take a file away."""
        self.taken.append((place, file, self.papers[place].pop(file)))
        (self.folder(place) / file).unlink()

    def put_back(self) -> None:
        """Bring back what was taken away last."""
        self._place(*self.taken.pop())

    def folder(self, place: str) -> Path:
        """Where a place's files lie."""
        if place != LIBRARY:
            return self.home / "inbox" / place
        return self.share.folder if self.share else self.home / LIBRARY

    def _place(self, place: str, file: str, paper: Paper) -> None:
        """In one step, as a move into the folder is."""
        draft = self.home / f".{file}"
        draft.write_bytes(paper.data)
        draft.replace(self.folder(place) / file)
        self.papers[place][file] = paper
        self.versions[paper.version] = paper

    def _paper(self, word: str, lines: int | None) -> Paper:
        version = self._word()
        texts = [
            f"{word} {version} {' '.join(self.random.choices(WORDS, k=5))} {word} {version}."
            for _ in range(lines or self.random.choice(LINES))
        ]
        pages = ["\n".join(texts[first : first + PAGE]) for first in range(0, len(texts), PAGE)]
        return Paper(word, version, pdf(*pages))

    def _word(self) -> str:
        """Return a word that no analyzer knows or shortens."""
        self._words += 1
        digits = "".join(CONSONANTS[int(digit, 16)] for digit in f"{self.seed % 4096:03x}{self._words:03x}")
        return f"zq{digits}zq"
