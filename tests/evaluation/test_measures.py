"""The measures count what they say, on replies small enough to count by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from evaluation.asking import Asked
from evaluation.golden import Golden, Kind
from evaluation.highlights import count_highlights
from evaluation.measures import (
    ANSWERS,
    RANKING,
    Result,
    citation_precision,
    figure_precision,
    removed_misses,
)
from evaluation.replies import Mark, Reply, read_reply
from evaluation.report import bars

from bot.core.models import Language
from bot.core.wording import reply_words

A, B, C = ("a.pdf", 1), ("b.pdf", 2), ("c.pdf", 3)


def result(*needs: frozenset[tuple[str, int]], kind: Kind = Kind.SINGLE, **reply: object) -> Result:
    """A question with these needs and its reply."""
    golden = Golden(
        "q",
        "test",
        "box",
        kind,
        "Which?",
        ("a.pdf",),
        needs,
        (),
        (("12 days", "twelve"),),
        frozenset({A}),
        (),
    )
    return Result(Asked(golden, "box", needs), Reply(**{"ranked": (), **reply}))  # type: ignore[arg-type]


def test_a_hit_is_the_share_of_what_was_asked() -> None:
    """Two things asked, one of them among the first three."""
    one = result(frozenset({A}), frozenset({B}), ranked=(C, A, C, B))
    assert (one.hit(1), one.hit(3), one.hit(5)) == (0, 0.5, 1)
    assert one.reciprocal_rank() == 0.5
    assert RANKING["document hit@5"]([result(frozenset({A}), ranked=(("a.pdf", 9),))]) == 1


def test_a_cited_page_counts_once_and_only_where_an_answer_is() -> None:
    """Three quotes of two pages, one of them right; what an unanswerable question cites is no matter here."""
    marks = tuple(Mark(page, "words", ()) for page in (A, A, C))
    results = [result(frozenset({A}), marks=marks), result(kind=Kind.ABSENT_HERE, marks=marks)]
    assert citation_precision(results) == 0.5
    assert ANSWERS["citation page recall"](results) == 1


def test_quotes_in_a_models_place_are_told() -> None:
    """Else a model that never answered would be measured by quotes."""
    excused = f"{reply_words(Language.ENGLISH).model_failed}\nTwelve. [1]"
    results = [result(frozenset({A}), text=text) for text in (excused, "Twelve. [1]")]
    assert ANSWERS["a model's place taken by quotes"](results) == 0.5


def test_an_answerer_that_quotes_nothing_meets_no_bar_and_breaks_none() -> None:
    """A slow model's few questions may all be refused."""
    found = bars("m", [result(frozenset({A}), state="not_found")], count_highlights([], {}), {})
    assert [one.is_met for one in found] == [False, False, True]


def test_a_misspelt_question_does_not_count_its_question_twice() -> None:
    """It was found and refused; the measures tell of the other alone."""
    spelt = result(frozenset({A}), ranked=(B,), text="Twelve.")
    asked = replace(spelt.asked, golden=replace(spelt.asked.golden, id="m", twin="q"))
    results = [spelt, Result(asked, Reply(ranked=(A,), state="not_found"))]
    assert {RANKING[what](results) for what in ("page hit@5", "page hit@5, single", "MRR")} == {0}
    assert ANSWERS["answerable refused"](results) == 0
    assert ANSWERS["answer contained"](results) == 1


def test_refusals_are_counted_by_kind() -> None:
    """One of two answerable questions refused, and the one off the subject."""
    results = [
        result(frozenset({A}), state="not_found"),
        result(frozenset({A}), text="It is Twelve."),
        result(kind=Kind.OFF_SUBJECT, state="not_found"),
    ]
    assert ANSWERS["answerable refused"](results) == 0.5
    assert ANSWERS["off subject refused"](results) == 1
    assert ANSWERS["answer contained"](results) == 0.5


def test_only_figures_that_were_asked_for_are_judged() -> None:
    """One right of two shown."""
    assert figure_precision([result(frozenset({A}), kind=Kind.FIGURE, figures=(A, B))]) == 0.5
    assert (
        ANSWERS["figures nobody asked for"]([result(frozenset({A}), kind=Kind.NO_FIGURE, figures=(A,))]) == 1
    )


def test_removed_misses_come_with_their_bounds() -> None:
    """Half of their misses are ours no longer; equal results remove none."""
    ours, theirs = [1.0] * 90 + [0.0] * 10, [1.0] * 80 + [0.0] * 20
    removed, low, high = removed_misses(ours, theirs)
    assert removed == pytest.approx(0.5)
    assert 0.2 < low < removed < high
    assert removed_misses(theirs, theirs) == (0, 0, 0)


def test_a_line_of_the_program_is_read_as_it_is_printed() -> None:
    """Pages in the order of the passages, each once."""
    line = {
        "passages": [
            {"file": "x/a.pdf", "page": 1, "last_page": 2},
            {"file": "x/a.pdf", "page": 2, "last_page": 2},
        ],
        "state": "grounded",
        "text": "“Twelve.” [1]",
        "citations": [{"file": "x/a.pdf", "page": 2, "quote": "Twelve.", "boxes": [[0.1, 0.2, 0.3, 0.4]]}],
        "figures": [],
        "milliseconds": {"total": 12},
    }
    reply = read_reply(line)
    assert reply.ranked == (("a.pdf", 1), ("a.pdf", 2))
    assert reply.marks == (Mark(("a.pdf", 2), "Twelve.", ((0.1, 0.2, 0.3, 0.4),)),)
