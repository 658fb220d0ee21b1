"""Report: one table with a column per reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tools.bench.figures import VERDICTS, markdown
from tools.bench.reading.findings import Readout
from tools.bench.reading.labels import Labels
from tools.bench.reading.measures.headings import count_headings, scores
from tools.bench.reading.measures.order import count_order
from tools.bench.reading.measures.pictures import count_figures
from tools.bench.reading.measures.sentences import Words
from tools.bench.reading.measures.tables import count_tables
from tools.bench.reading.measures.words import count_words
from tools.bench.reading.tally import Tally


@dataclass(frozen=True, slots=True)
class Row:
    """A measure: its value by reader, and whether ours meets the bar."""

    what: str
    bar: str
    values: Mapping[str, str]
    # None: there is no bar.
    is_met: bool | None = None


@dataclass(frozen=True, slots=True)
class Tallies:
    """All counts of one reader."""

    headings: Tally
    tables: Tally
    order: Tally
    figures: Tally
    words: Tally
    pages_per_second: float

    def wrong(self) -> list[str]:
        """Return a line for everything missed or invented."""
        all_tallies = (self.words, self.headings, self.tables, self.order, self.figures)
        return [line for one in all_tallies for line in one.wrong]


Value = Callable[[Tallies], float]


def count(labels: Labels, printed_words: Words, readout: Readout) -> Tallies:
    """Compare a reader's findings with the labels."""
    return Tallies(
        count_headings(labels.headings, readout.seen),
        count_tables(labels.tables, readout.seen),
        count_order(labels.order, readout.seen),
        count_figures(labels.figures, readout.seen),
        count_words(printed_words, readout.seen),
        readout.pages / readout.seconds,
    )


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of the table; bars apply to the reader named ``ours``."""

    tallies: Mapping[str, Tallies]
    ours: str

    def all(self) -> list[Row]:
        """Return all rows, in table order."""
        return [*self._headings(), *self._tables(), *self._figures(), *self._texts()]

    def _headings(self) -> list[Row]:
        counts = self.tallies[self.ours].headings.counts
        plain = f"  found of the {counts['plain asked']} set like text"
        return [
            self._share(f"headings, precision (of {counts['asked']})", lambda one: scores(one.headings)[0]),
            self._share("headings, recall", lambda one: scores(one.headings)[1]),
            self._share("headings, F1", lambda one: scores(one.headings)[2], least=0.85),
            self._share(plain, lambda one: one.headings.share("plain found", "plain asked")),
        ]

    def _tables(self) -> list[Row]:
        some = self.tallies[self.ours]
        cells = f"table cells right (of {some.tables.counts['asked']})"
        pairs = f"reading order, pairs right (of {some.order.counts['asked']})"
        return [
            self._share(cells, lambda one: one.tables.share("right", "asked"), least=0.90),
            self._number("  tables invented", lambda one: one.tables.counts["invented"]),
            self._share(pairs, lambda one: one.order.share("right", "asked")),
        ]

    def _figures(self) -> list[Row]:
        found = f"figures found (of {self.tallies[self.ours].figures.counts['asked']})"
        return [
            self._share(found, lambda one: one.figures.share("right", "asked"), least=0.90),
            self._share(
                "  decoration among them", lambda one: one.figures.share("decoration", "found"), most=0.05
            ),
        ]

    def _texts(self) -> list[Row]:
        asked = self.tallies[self.ours].words.counts["asked"]
        return [
            self._share(f"words kept (of {asked})", lambda one: one.words.share("kept", "asked")),
            self._number("pages per CPU second", lambda one: one.pages_per_second),
        ]

    def _share(
        self, what: str, value: Value, *, least: float | None = None, most: float | None = None
    ) -> Row:
        values = {name: f"{value(one):.3f}" for name, one in self.tallies.items()}
        own = value(self.tallies[self.ours])
        if least is not None:
            return Row(what, f">= {least:.2f}", values, own >= least)
        if most is not None:
            return Row(what, f"<= {most:.2f}", values, own <= most)
        return Row(what, "", values)

    def _number(self, what: str, value: Value) -> Row:
        return Row(what, "", {name: f"{value(one):.0f}" for name, one in self.tallies.items()})


def _decoration(one: Tallies) -> float:
    return one.figures.share("decoration", "found")


def printed(rows: Sequence[Row], readers: Sequence[str]) -> str:
    """Return the rows as a Markdown table."""
    lines = [("what", "bar", *readers, "")]
    for row in rows:
        values = (row.values.get(name, "") for name in readers)
        lines.append((row.what, row.bar, *values, VERDICTS[row.is_met]))
    return markdown(lines)
