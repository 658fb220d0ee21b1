"""State machine over a home: every event in any order, with invariants checked after each step."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

from harness.clocks import advance_clocks, shift_wall_clock
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from machine_folders import PAPERS
from machine_life import GENERATIONS, Life
from machine_people import ANY, FILES, PLACES, People

from storage.crash_points import POINTS
from storage.models import TenantName

T = TypeVar("T")

# A reading interrupted by ten crashes fails for good, which is right and not tested here.
MOST_CRASHES = 8
# Scans of all places, 40 s apart, until the state must match the folders.
FEWEST_ROUNDS, MOST_ROUNDS = 3, 15


class FolderMachine(People):
    """Users, at most two ingestions on the home, failing engines and clock jumps."""

    @initialize(files=st.lists(st.tuples(PLACES, FILES, ANY), max_size=6), attached=st.integers(0, 3))
    def begin(self, files: list[tuple[str, str, int]], attached: int) -> None:
        """Create some files before the first run starts."""
        self.wish.attach(attached)
        for place, file, paper in files:
            self.wish.places[place].write(file, PAPERS[paper % len(PAPERS)])
        self._start(0)
        for _ in range(2):
            self._go_on(self.lives[0], 2)

    @rule(which=ANY, seconds=st.sampled_from((0, 2, 12, 40)))
    def look(self, which: int, seconds: int) -> None:
        """Let time pass, then scan every place."""
        self._pass(seconds=seconds)
        if self.lives:
            life = self._life(which)
            self._judged(life, life.tick())

    @rule(which=ANY)
    def work(self, which: int) -> None:
        """Run the steps that are due."""
        if self.lives:
            self._run(self._life(which).work())

    @rule(which=ANY)
    def look_and_work(self, which: int) -> None:
        """Run as much as happens in a few undisturbed seconds."""
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
        """Crash a run as by kill -9 and start another."""
        if self.lives:
            life = self._life(which)
            if self._judged(life, life.die_at(f"{point}:{nth}")):
                self.crashes += 1
                self.lives.remove(life)
                self._start(life.generation)

    @rule(which=ANY, generation=st.integers(0, len(GENERATIONS) - 1))
    def restart(self, which: int, generation: int) -> None:
        """Stop a run cleanly and start another, perhaps with other settings."""
        if self.lives:
            life = self._life(which)
            self._run(life.end())
            self.lives.remove(life)
        self._start(generation)

    @precondition(lambda self: len(self.lives) < 2)
    @rule()
    def start_another(self) -> None:
        """Start a second process on the same home."""
        self._start(self.lives[0].generation if self.lives else 0)

    @precondition(lambda self: len(self.lives) == 2)
    @rule(which=ANY)
    def leave(self, which: int) -> None:
        """Stop one of two processes cleanly."""
        life = self._life(which)
        self._run(life.end())
        self.lives.remove(life)

    # Engines and clocks

    @rule(
        fault=st.sampled_from(("index_is_down", "embedder_is_away", "reader_does_not_start", "disk_is_full"))
    )
    def fail(self, fault: str) -> None:
        """Make an engine fail until it is healed."""
        setattr(self.home.faults, fault, True)

    @rule(fault=st.sampled_from(("unknown_writes", "incomplete_seals")), times=st.integers(1, 3))
    def fail_halfway(self, fault: str, times: int) -> None:
        """Make the next writes, or seals, fail."""
        setattr(self.home.faults, fault, times)

    @rule()
    def heal(self) -> None:
        """Heal every engine."""
        self.home.faults.heal()

    @precondition(lambda self: self.home.index.written)
    @rule(which=ANY, what=st.sampled_from(("all", "chunk", "vectors")))
    def lose(self, which: int, what: str) -> None:
        """Let the index lose acknowledged data."""
        tenant, publication = self._written(which)
        if self._run(self.witness.is_in_index(tenant, publication)):
            self._run(self.home.index.lose(tenant, publication, what))
            self.model.damaged.add(publication)

    @precondition(lambda self: self.home.index.written)
    @rule(which=ANY)
    def resurrect(self, which: int) -> None:
        """Let the index resurrect removed data."""
        tenant, publication = self._written(which)
        if not self._run(self.witness.is_known(publication)):
            self._run(self.home.index.resurrect(tenant, publication))

    @rule(hours=st.sampled_from((-2, 1, 3)))
    def turn_clock(self, hours: int) -> None:
        """Change the machine's clock; monotonic time is unaffected."""
        self.model.let_pass(abs(hours))
        self.hours_back += max(0, -hours)
        self.clocks.enter_context(shift_wall_clock(timedelta(hours=hours)))

    @rule()
    def let_grace_pass(self) -> None:
        """Let two days pass, so that deleted documents can no longer be restored."""
        self._pass(days=2)
        for life in self.lives:
            self._run(life.tend())

    # Invariants

    @invariant()
    def answers(self) -> None:
        """Check that every live document stays live, complete and with its newest content."""
        self.bench.steps += 1
        self._observe()

    def _observe(self) -> None:
        self.model.note_wish()
        self.model.observe(self._run(self.witness.ask()), self.may_end)
        self.may_end = set()

    @rule()
    def settle(self) -> None:
        """Check that the state matches the folders once every engine is healthy and time has passed."""
        self.home.faults.heal()
        if not self.lives:
            self._start(0)
        self._pass(seconds=3700, hours=self.hours_back)  # with the clock set back, due times are later
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
        """Return the differences between the state and the folders."""
        if unrest := self._run(self.witness.unrest()):
            return [f"it never comes to rest: {unrest}"]
        folders = self._run(self.witness.folders())
        faults = self.model.expect(folders) + self._run(self.witness.compare_with_index())
        faults += self._run(self.witness.compare_links(self.model.answers, self.model.ended))
        return faults + [f"{one} is live twice" for one in self._run(self.witness.live_twice())]

    def teardown(self) -> None:
        """Settle once more with everything approved, and compare."""
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
        """Check that the disk holds exactly what is needed once every grace period is over."""
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
        """Run a step and let the model check its deletions."""
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
        self.clocks.enter_context(advance_clocks(by))

    def _life(self, which: int) -> Life:
        return self.lives[which % len(self.lives)]

    def _written(self, which: int) -> tuple[TenantName, UUID]:
        written = sorted(self.home.index.written)
        return written[which % len(written)]
