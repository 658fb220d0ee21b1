"""The machine: everything that can happen to a home, in any order, and what must hold at every step."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from machine_folders import PAPERS
from machine_life import GENERATIONS, Life
from machine_people import ANY, FILES, PLACES, People

from storage.clock import clock_ahead, time_passed
from storage.crash_points import POINTS
from storage.models import TenantName

T = TypeVar("T")

# A reading that is met by ten deaths is given up, which is right and not what is tested here.
MOST_CRASHES = 8
# Looks at everything, 40 s apart, until all must be as the folders say.
FEWEST_ROUNDS, MOST_ROUNDS = 3, 15


class FolderMachine(People):
    """People, at most two ingestions on the home, engines that fail and clocks that jump."""

    @initialize(files=st.lists(st.tuples(PLACES, FILES, ANY), max_size=6), attached=st.integers(0, 3))
    def begin(self, files: list[tuple[str, str, int]], attached: int) -> None:
        """Some files are there before the first life begins."""
        self.wish.attach(attached)
        for place, file, paper in files:
            self.wish.places[place].write(file, PAPERS[paper % len(PAPERS)])
        self._start(0)
        for _ in range(2):
            self._go_on(self.lives[0], 2)

    @rule(which=ANY, seconds=st.sampled_from((0, 2, 12, 40)))
    def look(self, which: int, seconds: int) -> None:
        """Some time goes by, then every place is looked at."""
        self._pass(seconds=seconds)
        if self.lives:
            life = self._life(which)
            self._judged(life, life.tick())

    @rule(which=ANY)
    def work(self, which: int) -> None:
        """What is due is done."""
        if self.lives:
            self._run(self._life(which).work())

    @rule(which=ANY)
    def look_and_work(self, which: int) -> None:
        """As much as happens in a few seconds of peace."""
        if self.lives:
            self._go_on(self._life(which), 2)
            self._go_on(self._life(which), 2)

    @rule(which=ANY)
    def tend(self, which: int) -> None:
        """Purge, verify and reconcile."""
        if self.lives:
            self._run(self._life(which).tend())
            self._run(self._life(which).reconcile())

    @precondition(lambda self: self.crashes < MOST_CRASHES)
    @rule(which=ANY, point=st.sampled_from(POINTS), nth=st.integers(1, 3))
    def crash(self, which: int, point: str, nth: int) -> None:
        """A life ends as by kill -9, and another begins."""
        if self.lives:
            life = self._life(which)
            if self._judged(life, life.die_at(f"{point}:{nth}")):
                self.crashes += 1
                self.lives.remove(life)
                self._start(life.generation)

    @rule(which=ANY, generation=st.integers(0, len(GENERATIONS) - 1))
    def restart(self, which: int, generation: int) -> None:
        """A life ends in good order, and another begins, perhaps with other settings."""
        if self.lives:
            life = self._life(which)
            self._run(life.end())
            self.lives.remove(life)
        self._start(generation)

    @precondition(lambda self: len(self.lives) < 2)
    @rule()
    def start_another(self) -> None:
        """A second process on the same home."""
        self._start(self.lives[0].generation if self.lives else 0)

    @precondition(lambda self: len(self.lives) == 2)
    @rule(which=ANY)
    def leave(self, which: int) -> None:
        """One of two processes ends in good order, and the other goes on alone."""
        life = self._life(which)
        self._run(life.end())
        self.lives.remove(life)

    # The engines and the clocks

    @rule(
        fault=st.sampled_from(("index_is_down", "embedder_is_away", "reader_does_not_start", "disk_is_full"))
    )
    def fail(self, fault: str) -> None:
        """An engine is away until it is healed."""
        setattr(self.home.faults, fault, True)

    @rule(fault=st.sampled_from(("unknown_writes", "incomplete_seals")), times=st.integers(1, 3))
    def fail_halfway(self, fault: str, times: int) -> None:
        """The next writes, or counts, go wrong."""
        setattr(self.home.faults, fault, times)

    @rule()
    def heal(self) -> None:
        """Every engine works again."""
        self.home.faults.heal()

    @precondition(lambda self: self.home.index.written)
    @rule(which=ANY, what=st.sampled_from(("all", "chunk", "vectors")))
    def lose(self, which: int, what: str) -> None:
        """The index loses what it had acknowledged."""
        tenant, publication = self._written(which)
        if self._run(self.witness.is_in_index(tenant, publication)):
            self._run(self.home.index.lose(tenant, publication, what))
            self.model.damaged.add(publication)

    @precondition(lambda self: self.home.index.written)
    @rule(which=ANY)
    def resurrect(self, which: int) -> None:
        """The index holds again what was removed from it."""
        tenant, publication = self._written(which)
        if not self._run(self.witness.is_known(publication)):
            self._run(self.home.index.resurrect(tenant, publication))

    @rule(hours=st.sampled_from((-2, 1, 3)))
    def turn_clock(self, hours: int) -> None:
        """Somebody sets the machine's clock; time itself goes on as ever."""
        self.model.let_pass(abs(hours))
        self.hours_back += max(0, -hours)
        self.clocks.enter_context(clock_ahead(timedelta(hours=hours)))

    @rule()
    def let_grace_pass(self) -> None:
        """Two days go by: what was deleted cannot be brought back any more."""
        self._pass(days=2)
        for life in self.lives:
            self._run(life.tend())

    # What must hold

    @invariant()
    def answers(self) -> None:
        """Every document that answered goes on answering, whole and with its newest content."""
        self.bench.steps += 1
        self._observe()

    def _observe(self) -> None:
        self.model.note_wish()
        self.model.observe(self._run(self.witness.ask()), self.may_end)
        self.may_end = set()

    @rule()
    def settle(self) -> None:
        """Once every engine is healthy and time has passed, everything is as the folders say."""
        self.home.faults.heal()
        if not self.lives:
            self._start(0)
        self._pass(seconds=3700, hours=self.hours_back)  # by a clock set back, what is due comes later
        self.hours_back = 0
        for life in self.lives:
            self._run(life.tend())
        for _ in range(FEWEST_ROUNDS):
            self._settle_a_little()
        rounds = FEWEST_ROUNDS
        while faults := self._differences():
            assert rounds < MOST_ROUNDS, "\n".join(faults)
            self._settle_a_little()
            rounds += 1
        others = self.model.recognise(self._run(self.witness.folders()))
        assert not others, "\n".join(others)
        self.model.damaged.clear()

    def _settle_a_little(self) -> None:
        self._pass(seconds=40)
        for life in self.lives:
            self._judged(life, life.tick())
            self._run(life.work())
        self._observe()

    def _differences(self) -> list[str]:
        """What is not yet, or not any more, as the folders say."""
        if unrest := self._run(self.witness.unrest()):
            return [f"it never comes to rest: {unrest}"]
        folders = self._run(self.witness.folders())
        faults = self.model.expect(folders) + self._run(self.witness.compare_with_index())
        faults += self._run(self.witness.compare_links(self.model.answers, self.model.ended))
        return faults + [f"{one} is live twice" for one in self._run(self.witness.live_twice())]

    def teardown(self) -> None:
        """Settle once more, with an admin's word for everything, and compare."""
        try:
            if self.lives:
                self._settle_for_good()
        finally:
            self.clocks.close()
            self._run(self.home.aclose())

    def _settle_for_good(self) -> None:
        for place in self.wish.places.values():
            if place.outage:
                place.come_back()
        self.settle()
        if any(folder.asked for folder in self._run(self.witness.folders()).values()):
            self.approve()
            self.settle()
        self._sweep()

    def _sweep(self) -> None:
        """Once every grace is over, the disk holds what is wanted and nothing else."""
        self._pass(days=2)
        for _ in range(FEWEST_ROUNDS):
            self._pass(seconds=120)
            for life in self.lives:
                self._run(life.work())
                self._run(life.tend())
                self._run(life.reconcile())
        faults = self._run(self.witness.compare_with_disk())
        assert not faults, "\n".join(faults)

    def _judged(self, life: Life, work: Awaitable[T]) -> T:
        """What a life may delete is judged by what was there before and after."""
        before = self._run(self.witness.folders())
        result = self._run(work)
        self.may_end |= self.model.judge(life, before, self._run(self.witness.folders()))
        return result

    def _go_on(self, life: Life, seconds: float) -> None:
        self._pass(seconds=seconds)
        self._judged(life, life.tick())
        self._run(life.work())

    def _start(self, generation: int) -> None:
        life = Life(self.home, self.wish, generation)
        self._judged(life, life.begin())
        self.lives.append(life)

    def _pass(self, **much: float) -> None:
        by = timedelta(**much)
        self.model.let_pass(by / timedelta(hours=1))
        self.clocks.enter_context(time_passed(by))

    def _life(self, which: int) -> Life:
        return self.lives[which % len(self.lives)]

    def _written(self, which: int) -> tuple[TenantName, UUID]:
        written = sorted(self.home.index.written)
        return written[which % len(written)]
