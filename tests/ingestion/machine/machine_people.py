"""User actions: rules of the state machine that change the folders, and an admin's approval."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import ExitStack
from typing import ClassVar, TypeVar
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from machine_folders import ALPHA, BETA, LIBRARY, NAMES, PAPERS, UNREADABLE, Paper, Wish
from machine_home import Bench
from machine_life import Life
from machine_model import Model
from machine_witness import Witness

T = TypeVar("T")

PLACES = st.sampled_from((ALPHA, BETA, LIBRARY))
FILES = st.sampled_from(NAMES)
# Index into the items that exist at the moment.
ANY = st.integers(0, 11)


class People(RuleBasedStateMachine):
    """A home, its watched folders, and the users who change them."""

    bench: ClassVar[Bench]

    def __init__(self) -> None:
        super().__init__()
        self.home = self.bench.make_home()
        self.wish = Wish(self.home.path / "disk", self.home.map_file, str(self.bench.examples))
        self.witness = Witness(self.home, self.wish.channels)
        self.model = Model(self.wish)
        self.clocks = ExitStack()
        self.lives: list[Life] = []
        self.crashes = 0
        # Hours that clocks were set back since the last settled state.
        self.hours_back = 0
        self.taken: list[tuple[str, str, Paper]] = []
        self.may_end: set[UUID] = set()

    @rule(place=PLACES, file=FILES, paper=ANY)
    def write(self, place: str, file: str, paper: int) -> None:
        """Create or replace a file; now and then by an unreadable one."""
        if self.wish.places[place].outage is None:
            contents = (*PAPERS, *UNREADABLE)
            self._put(place, file, contents[paper % len(contents)])

    @rule(place=PLACES, file=ANY, paper=ANY)
    def overwrite(self, place: str, file: int, paper: int) -> None:
        """Overwrite a file with other bytes."""
        if name := self._file(place, file):
            self.model.touch(place, name, PAPERS[paper % len(PAPERS)])
            self.wish.places[place].overwrite(name, PAPERS[paper % len(PAPERS)])

    @rule(place=PLACES, file=ANY)
    def cut_off(self, place: str, file: int) -> None:
        """Truncate a file."""
        if name := self._file(place, file):
            self.model.touch(place, name)
            self.wish.places[place].overwrite(name, self.wish.places[place].papers[name].cut_off)

    @rule(place=PLACES, file=ANY, new=FILES)
    def rename(self, place: str, file: int, new: str) -> None:
        """Rename a file, possibly to another file's former name."""
        if (name := self._file(place, file)) and name != new:
            self.model.rename(place, name, new, self._known())
            self.wish.places[place].rename(name, new)

    @rule(place=PLACES, file=ANY, new=FILES, to=PLACES)
    def move(self, place: str, file: int, new: str, to: str) -> None:
        """Move a file to another folder, of the same channel or not."""
        if place != to and self.wish.places[to].outage is None and (name := self._file(place, file)):
            self.model.touch(place, name)
            self.model.touch(to, new)
            self.wish.places[place].rename(name, new, self.wish.places[to])

    @rule(place=PLACES, one=ANY, other=ANY)
    def swap(self, place: str, one: int, other: int) -> None:
        """Exchange the names of two files."""
        first, second = self._file(place, one), self._file(place, other)
        if first and second and first != second:
            self.model.swap(place, first, second)
            self.wish.places[place].swap(first, second)

    @rule(place=PLACES, file=ANY)
    def take(self, place: str, file: int) -> None:
        """Delete a file."""
        if name := self._file(place, file):
            self._take(place, name)

    @rule(place=PLACES, spared=ANY)
    def take_many(self, place: str, spared: int) -> None:
        """Delete all files of a folder but at most one."""
        spare = self._file(place, spared) if spared % 2 else None
        for name in [name for name in self._here(place) if name != spare]:
            self._take(place, name)

    @precondition(lambda self: self.taken)
    @rule(which=ANY, new=st.none() | FILES)
    def put_back(self, which: int, new: str | None) -> None:
        """Put the same bytes back, under their old name or another."""
        place, name, paper = self.taken.pop(which % len(self.taken))
        if self.wish.places[place].outage is None:
            holders = self._run(self.witness.holders(paper.sha256))
            known = self._known()
            self.model.put_back((place, name), new or name, paper, known=known, holders=holders)
            self.wish.places[place].write(new or name, paper)

    @rule(place=PLACES, how=st.sampled_from(("missing", "unreadable", "empty")))
    def unmount(self, place: str, how: str) -> None:
        """Make a folder unavailable."""
        if self.wish.places[place].outage is None:
            self.wish.places[place].go_away(how)

    @precondition(lambda self: any(place.outage for place in self.wish.places.values()))
    @rule()
    def mount(self) -> None:
        """Make all unavailable folders available again."""
        for place in self.wish.places.values():
            if place.outage:
                place.come_back()

    @rule(attached=st.integers(0, 3))
    def attach(self, attached: int) -> None:
        """Attach the library to other channels."""
        self.model.forget_identities(LIBRARY)
        self.wish.attach(attached)

    @rule()
    def approve(self) -> None:
        """Approve all pending deletions as an admin."""
        for name, place in self.wish.places.items():
            if place.outage:
                self.model.forget_identities(name)
        for folder in self._run(self.witness.folders()).values():
            self._run(self.home.folders.approve(folder.id))

    def _run(self, work: Awaitable[T]) -> T:
        return self.bench.run(work)

    def _put(self, place: str, file: str, paper: Paper) -> None:
        self.model.touch(place, file, paper)
        self.wish.places[place].write(file, paper)

    def _take(self, place: str, file: str) -> None:
        paper = self.wish.places[place].take(file)
        self.model.take(place, file, paper)
        self.taken.append((place, file, paper))

    def _known(self) -> set[str]:
        """Return the names of all documents."""
        return {one for folder in self._run(self.witness.folders()).values() for one in folder.documents}

    def _here(self, place: str) -> list[str]:
        where = self.wish.places[place]
        return [] if where.outage else sorted(where.papers)

    def _file(self, place: str, which: int) -> str | None:
        here = self._here(place)
        return here[which % len(here)] if here else None
