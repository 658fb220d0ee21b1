"""World: folders of PDFs that a driver keeps changing, and the expected live content of each.

Every line of a paper has two made-up words: one shared by all versions of the document, and one unique to
this version. So every chunk shows which content of which document it belongs to.
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
# Minimum files per folder: the last ones are never removed, because that would ask an admin.
FEWEST = 2
# Lines of a paper that fills several embedder batches, and more than one write to the index.
LARGE = 108
# Lines of other papers; each is about one chunk.
LINES = (6, 6, 12, 18, 42)
# Maximum lines per page. Few pages, since layout analysis of one takes longer than all that a kill could hit.
PAGE = 36
# Less than the time between two scans.
BLINK_SECONDS = 0.15


@dataclass(frozen=True, slots=True)
class Paper:
    """A content of a document."""

    # In every chunk of every version of the document.
    word: str
    # In every chunk of this content only.
    version: str
    data: bytes

    @property
    def sha256(self) -> str:
        """Hash of the content."""
        return hashlib.sha256(self.data).hexdigest()


LIBRARY = "library"


@dataclass
class World:
    """A folder per channel, a library shared by all of them, and their papers.

    ``seed`` decides everything that happens.
    """

    home: Path
    channels: tuple[str, ...]
    seed: int
    # Place (a channel or the library) -> file -> paper.
    papers: dict[str, dict[str, Paper]] = field(default_factory=dict)
    # Removed files, which may be restored.
    removed: list[tuple[str, str, Paper]] = field(default_factory=list)
    # Word of a version -> its content, for all contents ever.
    versions: dict[str, Paper] = field(default_factory=dict)
    # Location of the library; None: next to the inbox.
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
        """Return the channels in which a place's papers are live."""
        return self.channels if place == LIBRARY else (place,)

    @property
    def files(self) -> int:
        """Number of files in all places."""
        return sum(map(len, self.papers.values()))

    def wanted(self, channel: str) -> dict[str, Paper]:
        """Return the papers expected to be live in a channel, by file."""
        return {**self.papers[channel], **self.papers[LIBRARY]}

    def add(self, lines: int | None = None) -> None:
        """Add a file to one place, or the same bytes to all channels."""
        paper = self._paper(self._word(), lines)
        places = self.channels if self.random.random() < 0.2 else [self.random.choice(list(self.papers))]
        for place in places:
            self._place(place, f"{paper.word}.pdf", paper)

    def fill(self) -> None:
        """Create the initial files: the minimum for each place."""
        for place in self.papers:
            for _ in range(FEWEST):
                paper = self._paper(self._word(), LINES[0])
                self._place(place, f"{paper.word}.pdf", paper)

    def replace(self, place: str, file: str) -> None:
        """Replace a file's content, sometimes by an earlier one."""
        old = self.papers[place][file]
        earlier = [one for one in self.versions.values() if one.word == old.word and one != old]
        again = earlier and self.random.random() < 0.2
        self._place(place, file, self.random.choice(earlier) if again else self._paper(old.word, None))

    def rename(self, place: str, file: str) -> None:
        """Rename a file."""
        paper, new = self.papers[place].pop(file), f"{self._word()}.pdf"
        (self.folder(place) / file).rename(self.folder(place) / new)
        self.papers[place][new] = paper

    def blink(self, place: str, file: str) -> float:
        """Move a file away and back, as some programs save; return for how long, in seconds."""
        path, away, began = self.folder(place) / file, self.home / f".{file}", time.monotonic()
        path.rename(away)
        time.sleep(BLINK_SECONDS)  # blocks on purpose: nothing is asked in between
        away.rename(path)
        return time.monotonic() - began

    def remove(self, place: str, file: str) -> None:
        """Remove a file."""
        self.removed.append((place, file, self.papers[place].pop(file)))
        (self.folder(place) / file).unlink()

    def put_back(self) -> None:
        """Restore the file that was removed last."""
        self._place(*self.removed.pop())

    def folder(self, place: str) -> Path:
        """Return the folder of a place."""
        if place != LIBRARY:
            return self.home / "inbox" / place
        return self.share.folder if self.share else self.home / LIBRARY

    def _place(self, place: str, file: str, paper: Paper) -> None:
        """Put a file in place atomically, like a move into the folder."""
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
        """Return a word that no analyzer knows or stems."""
        self._words += 1
        digits = "".join(CONSONANTS[int(digit, 16)] for digit in f"{self.seed % 4096:03x}{self._words:03x}")
        return f"zq{digits}zq"
