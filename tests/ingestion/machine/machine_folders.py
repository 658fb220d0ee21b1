"""Desired state: papers in folders on a real disk, changed in every way that users change folders."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from samples.paper import locked_pdf, pdf

ALPHA, BETA, LIBRARY = "alpha", "beta", "library"
NAMES = ("a.pdf", "b.pdf", "c.pdf", "d.pdf", "A.pdf", "deep/a.pdf")
CONSONANTS = "bcdfghjklm"


@dataclass(frozen=True, slots=True)
class Paper:
    """A content of the model."""

    # In each of its chunks and in no other paper; None if the content is unreadable.
    word: str | None
    data: bytes

    @property
    def sha256(self) -> str:
        """SHA-256 of the content."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def cut_off(self) -> Paper:
        """Return a truncated copy, as left by an upload that broke off before the first page."""
        return Paper(None, self.data[:200])


def _paper(number: int) -> Paper:
    """Return a paper of one to three pages; some papers have equal sizes."""
    word = f"zq{CONSONANTS[number]}{CONSONANTS[-number]}zq"
    pages = [f"Rule\nThe rule {word} on {'this ' * (number // 4)}page." for _ in range(1 + number % 3)]
    return Paper(word, pdf(*pages))


PAPERS = tuple(_paper(number) for number in range(8))
UNREADABLE = (Paper(None, b"<html>no paper</html>" * 20 + b"%%EOF"), Paper(None, locked_pdf("A rule.")))
BY_SHA256 = {paper.sha256: paper for paper in PAPERS}


@dataclass
class Place:
    """A folder that users change, and that may be unavailable."""

    root: Path
    # Path while it is unavailable.
    aside: Path
    # Its files, even while it is unavailable.
    papers: dict[str, Paper] = field(default_factory=dict)
    # ``missing``, ``unreadable`` (replaced by a file) or ``empty``; None while available.
    outage: str | None = None

    @property
    def is_healthy(self) -> bool:
        """True if a scan of it is complete; an empty mount point looks like any folder."""
        return self.outage in (None, "empty")

    @property
    def visible(self) -> dict[str, Paper]:
        """Files that a complete scan sees."""
        return {} if self.outage else self.papers

    def write(self, file: str, paper: Paper) -> None:
        """Put a file atomically, like a move into the folder, replacing a file of that name."""
        draft = self.aside.with_name("draft")
        draft.write_bytes(paper.data)
        (self.root / file).parent.mkdir(exist_ok=True)
        draft.replace(self.root / file)
        self.papers[file] = paper

    def overwrite(self, file: str, paper: Paper) -> None:
        """Write into an existing file: it keeps its inode."""
        (self.root / file).write_bytes(paper.data)
        self.papers[file] = paper

    def rename(self, file: str, new: str, to: Place | None = None) -> None:
        """Rename or move a file, replacing one of that name."""
        target = to or self
        (target.root / new).parent.mkdir(exist_ok=True)
        (self.root / file).replace(target.root / new)
        target.papers[new] = self.papers.pop(file)

    def swap(self, one: str, other: str) -> None:
        """Exchange the names of two files."""
        between = self.aside.with_name("between")
        (self.root / one).replace(between)
        (self.root / other).replace(self.root / one)
        between.replace(self.root / other)
        self.papers[one], self.papers[other] = self.papers[other], self.papers[one]

    def take(self, file: str) -> Paper:
        """Delete a file."""
        (self.root / file).unlink()
        return self.papers.pop(file)

    def go_away(self, how: str) -> None:
        """Become missing, unreadable or an empty mount point."""
        self.root.rename(self.aside)
        if how == "empty":
            self.root.mkdir()
        elif how == "unreadable":
            self.root.write_bytes(b"")
        self.outage = how

    def come_back(self) -> None:
        """Become available again, with all files."""
        if self.outage == "empty":
            self.root.rmdir()
        elif self.outage == "unreadable":
            self.root.unlink()
        self.aside.rename(self.root)
        self.outage = None


class Wish:
    """Two channels' folders in an inbox, and a library attached to some channels."""

    def __init__(self, base: Path, map_file: Path, suffix: str) -> None:
        """Create the folders below ``base``; channels are named by place and ``suffix``."""
        self.inbox = base / "inbox"
        self._map_file = map_file
        self.channels = tuple(f"{name}{suffix}" for name in (ALPHA, BETA))
        roots = {ALPHA: self.inbox / self.channels[0], BETA: self.inbox / self.channels[1]}
        roots[LIBRARY] = base / LIBRARY
        (base / "away").mkdir(parents=True)
        self.places = {name: Place(root, base / "away" / name) for name, root in roots.items()}
        for place in self.places.values():
            place.root.mkdir(parents=True)
        self.attach(0)

    def attach(self, channels: int) -> None:
        """Attach the library to exactly these channels, given as a bit mask."""
        self.attached = {name for bit, name in enumerate(self.channels) if channels >> bit & 1}
        text = "# nothing is mapped\n"
        if self.attached:
            text = f"[library.shared]\nchannels = {sorted(self.attached)}\n[[library.shared.folder]]\n"
            text += f'location = "{self.places[LIBRARY].root}"\n'
        self._map_file.write_text(text)

    def place_at(self, location: str) -> Place:
        """Return the place at a folder row's location."""
        return next(place for place in self.places.values() if str(place.root) == location)

    def name_of(self, location: str) -> str:
        """Return the name of the place at a location."""
        return next(name for name, place in self.places.items() if str(place.root) == location)

    def feeds(self, name: str) -> set[str]:
        """Return the channels that a place should be live in."""
        return set(self.attached) if name == LIBRARY else {self.channels[(ALPHA, BETA).index(name)]}
