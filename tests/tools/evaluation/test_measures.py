"""Evaluation measures, on replies small enough to count by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from bot.core.models import Language
from bot.core.wording import reply_words
from bot.quality.targets import MODEL_TARGETS, QUOTE_TARGETS, at_least, at_most
from tools.evaluation.asking import Asked
from tools.evaluation.golden import Golden, Kind
from tools.evaluation.highlights import count_highlights
from tools.evaluation.measures import (
    ANSWERS,
    RANKING,
    Result,
    citation_precision,
    figure_precision,
    removed_misses,
)
from tools.evaluation.replies import Mark, Reply, read_reply
from tools.evaluation.report import bars, rows, sampled_replies, searching_rows

NO_MARKS = count_highlights([], {})
A, B, C = ("a.pdf", 1), ("b.pdf", 2), ("c.pdf", 3)


def result(
    *needs: frozenset[tuple[str, int]],
    kind: Kind = Kind.SINGLE,
    name: str = "q",
    twin: str = "",
    **reply: object,
) -> Result:
    """Return a question with these needs and its reply."""
    golden = Golden(
        name,
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
        twin,
    )
    return Result(Asked(golden, "box", needs), Reply(**{"ranked": (), **reply}))  # type: ignore[arg-type]


def mark(page: tuple[str, int] = A, quote: str = "words", top: float | None = None) -> Mark:
    """Return a citation, with a box if it has a position on its page."""
    return Mark(page, quote, () if top is None else ((0.1, top, 0.9, top + 0.1),))


def test_a_hit_is_the_share_of_what_was_asked() -> None:
    """Two needs, one of them among the first three."""
    one = result(frozenset({A}), frozenset({B}), ranked=(C, A, C, B))
    assert (one.hit(1), one.hit(3), one.hit(5)) == (0, 0.5, 1)
    assert one.reciprocal_rank() == 0.5
    assert RANKING["document hit@5"]([result(frozenset({A}), ranked=(("a.pdf", 9),))]) == 1


def test_a_cited_page_counts_once_and_only_where_an_answer_is() -> None:
    """Three quotes from two pages, one of them right; not-found and unanswerable ones are excluded."""
    marks = tuple(map(mark, (A, A, C)))
    results = [
        result(frozenset({A}), frozenset({B}), marks=marks),
        result(frozenset({B}), state="not_found", marks=marks),
        result(kind=Kind.ABSENT_HERE, marks=marks),
    ]
    assert citation_precision(results) == 0.5
    assert ANSWERS["citation page recall"](results) == 0.5


def test_the_first_citation_is_the_one_that_is_opened() -> None:
    """The first citation of one of three answers is right; another cites it second, another not at all."""
    results = [
        result(frozenset({A}), marks=(mark(A), mark(C))),
        result(frozenset({A}), state="partial", marks=(mark(C), mark(A))),
        result(frozenset({A}), state="passages"),
        result(frozenset({A}), state="not_found"),
    ]
    assert ANSWERS["first citation on a right page"](results) == pytest.approx(1 / 3)


def test_quotes_in_place_of_a_model_are_counted() -> None:
    """Otherwise a model that never answered would be measured by quotes."""
    excused = f"{reply_words(Language.ENGLISH).model_failed}\nTwelve. [1]"
    results = [result(frozenset({A}), text=text) for text in (excused, "Twelve. [1]")]
    assert ANSWERS["a model's place taken by quotes"](results) == 0.5


def test_an_answerer_without_quotes_meets_no_quote_target() -> None:
    """A slow model may answer none of its few questions."""
    limits = {"citation page precision": at_least(0.8), "absent here claimed": at_most(0.15)}
    found = bars("m", [result(frozenset({A}), state="not_found")], NO_MARKS, limits)
    assert [one.is_met for one in found] == [False, False, True, False, True]


def test_quality_figures_have_the_same_targets() -> None:
    """Like those of a channel: three documents on average, and a median of nine seconds."""
    replies = [
        Reply(ranked=(A, B, C), figures=(A, C), marks=(mark(A),), milliseconds=9000),
        Reply(ranked=(A, B, C, ("a.pdf", 9)), state="passages", milliseconds=9000),
    ]
    results = [Result(result(frozenset({A})).asked, one) for one in replies]
    found = {one.what: (one.bar, one.measured, one.is_met) for one in bars("e", results, NO_MARKS, {})}
    assert found["e: figure: documents in the top five"] == (">= 1.2", "3.000", True)
    assert found["e: figure: figures on a cited page"] == (">= 0.8", "0.500", False)
    assert found["e: figure: seconds to an answer"] == ("<= 10", "9.000", True)


def test_a_target_is_a_minimum_or_a_maximum() -> None:
    """Half of the answerable questions and half of the absent ones are claimed."""
    kinds = [(Kind.SINGLE, frozenset({A})), (Kind.ABSENT_HERE, frozenset())]
    states = ("grounded", "not_found")
    results = [result(need, kind=kind, state=state) for kind, need in kinds for state in states]
    limits = {"answerable claimed": at_least(0.5), "absent here claimed": at_most(0.4)}
    least, most, *_ = bars("e", results, NO_MARKS, limits)
    assert (least.bar, least.measured, least.is_met) == (">= 0.5", "0.500", True)
    assert (most.bar, most.measured, most.is_met) == ("<= 0.4", "0.500", False)


def test_every_target_has_a_measure() -> None:
    """A renamed measure must be renamed in its target."""
    assert {*QUOTE_TARGETS, *MODEL_TARGETS} <= set(ANSWERS)


def test_claims_are_counted_by_kind() -> None:
    """Two of four answerable, none of two off the subject, one of two absent."""
    states = {
        Kind.SINGLE: ("grounded", "partial", "passages", "chat"),
        Kind.OFF_SUBJECT: ("passages", "not_found"),
        Kind.ABSENT_HERE: ("grounded", "failed"),
    }
    results = [result(kind=kind, state=state) for kind, found in states.items() for state in found]
    assert ANSWERS["answerable claimed"](results) == 0.5
    assert ANSWERS["off subject claimed"](results) == 0
    assert ANSWERS["absent here claimed"](results) == 0.5


def test_a_right_page_is_shown_or_linked() -> None:
    """Two of five are shown and one is linked by "not found"; one has neither, one has no page."""
    results = [
        result(frozenset({A}), frozenset({B}), state="passages", marks=(mark(C), mark(B))),
        result(frozenset({A}), state="not_found", nearest=A),
        result(frozenset({A}), state="passages", marks=(mark(C),)),
        result(frozenset({A}), state="not_found"),
        result(frozenset({A}), marks=(mark(A),)),
        result(kind=Kind.ABSENT_HERE, state="passages", marks=(mark(A),)),
    ]
    assert ANSWERS["answerable, right page shown"](results) == 0.4
    assert ANSWERS["answerable, right page shown or linked"](results) == 0.6


def test_not_found_is_counted_by_kind() -> None:
    """Half of the off-subject questions count, and none of the absent ones."""
    results = [
        result(kind=Kind.OFF_SUBJECT, state="not_found"),
        result(kind=Kind.OFF_SUBJECT, state="passages"),
        result(kind=Kind.ABSENT_HERE, state="passages"),
    ]
    assert ANSWERS["off subject, plain no"](results) == 0.5
    assert ANSWERS["absent here, plain no"](results) == 0


def test_an_answer_is_found_in_text_or_quotes() -> None:
    """Two of three contain it; "not found" never counts."""
    quoted = (mark(quote="It is 12 days."),)
    results = [
        result(frozenset({A}), text="It is Twelve."),
        result(frozenset({A}), text="See there. [1]", marks=quoted),
        result(frozenset({A}), text="It is 1", marks=(mark(quote="2 days"),)),
        result(frozenset({A}), state="not_found", marks=quoted),
    ]
    assert ANSWERS["answer contained"](results) == pytest.approx(2 / 3)


def test_quotes_and_characters_are_counted_for_cited_replies() -> None:
    """Three quotes and 15 characters in two replies, one of them to an unanswerable question."""
    results = [
        result(frozenset({A}), text="Twelve. [1]", marks=(mark(), mark())),
        result(kind=Kind.ABSENT_HERE, state="passages", text="“No”", marks=(mark(),)),
        result(frozenset({A}), state="not_found", text="I couldn’t find that."),
    ]
    assert ANSWERS["quotes a reply"](results) == 1.5
    assert ANSWERS["characters a reply"](results) == 7.5


@pytest.mark.parametrize(
    ("marks", "in_order"),
    [
        ((mark(A, top=0.8), mark(("a.pdf", 2), top=0.1)), 1),
        ((mark(A, top=0.1), mark(A, top=0.1), mark(A, top=0.2)), 1),
        ((mark(A, top=0.2), mark(A, top=0.1)), 0),
        ((mark(("a.pdf", 2)), mark(A)), 0),
        ((mark(A, top=0.1), mark(A), mark(A, top=0.2)), 1),
        ((mark(A, top=0.2), mark(A), mark(A, top=0.1)), 0),
    ],
    ids=["next page", "down the page", "up the page", "page before", "one unplaced", "up, one unplaced"],
)
def test_steps_are_in_document_order(marks: tuple[Mark, ...], in_order: float) -> None:
    """Pages ascend, and boxes within a page; a citation without a box is compared by page only."""
    assert ANSWERS["steps in page order"]([result(frozenset({A}), marks=marks)]) == in_order


def test_order_is_measured_for_several_quotes_of_one_document() -> None:
    """Replies with one quote, with quotes of two documents, or with mere passages have none."""
    wrong = (mark(A, top=0.2), mark(A, top=0.1))
    unjudged = [
        result(frozenset({A}), marks=(mark(A),)),
        result(frozenset({A}), marks=(mark(B), mark(A))),
        result(frozenset({A}), marks=wrong, state="passages"),
    ]
    assert math.isnan(ANSWERS["steps in page order"](unjudged))
    assert ANSWERS["steps in page order"]([*unjudged, result(frozenset({A}), marks=wrong)]) == 0


def test_misspelling_is_measured_against_correctly_spelt_twins() -> None:
    """The page is lost in one of two pairs; questions without an asked twin are excluded."""
    results = [
        result(frozenset({A}), name="one", ranked=(A,)),
        result(frozenset({A}), name="two", ranked=(A,)),
        result(frozenset({A}), name="three", ranked=(B,)),
        result(frozenset({A}), twin="one", ranked=(B, A)),
        result(frozenset({A}), twin="two", ranked=(B,)),
        result(frozenset({A}), twin="four", ranked=(B,)),
    ]
    assert ANSWERS["misspelt: hit@5 lost"](results) == 0.5


def test_misspelt_questions_enter_no_other_measure() -> None:
    """No other measure changes if each question is also asked misspelt and answered wrongly."""
    results = [
        result(frozenset({A}), kind=kind, name=kind, ranked=(A,), marks=(mark(A, top=0.1), mark(A, top=0.2)))
        for kind in Kind
    ]
    wrong = Reply((C,), "passages", marks=(mark(C),), figures=(C,), milliseconds=99)
    misspelt = [replace(result(frozenset({A}), kind=kind, twin=kind), reply=wrong) for kind in Kind]
    alone, together = (
        str([*rows({"e": found}), *searching_rows({"e": found})])
        for found in (results, [*results, *misspelt])
    )
    assert together == alone.replace("('misspelt: hit@5 lost', 'nan')", "('misspelt: hit@5 lost', '1.000')")


def test_the_sample_for_human_review_is_deterministic() -> None:
    """Two of nine, with all fields needed to judge them."""
    results = [
        result(
            frozenset({A, B}),
            name=f"q-{number}",
            state="passages",
            text="Perhaps.\n“Words.” [1]",
            marks=(mark(A), mark(C)),
            nearest=C,
        )
        for number in range(9)
    ]
    read = sampled_replies(results, 2)
    assert read == sampled_replies(results, 2)
    assert len(set(read)) == 2
    assert len(sampled_replies(results, 30)) == 9
    assert read[0].splitlines()[1:] == [
        f"{read[0].split()[0]} (single, passages) 'Which?'",
        "    | Perhaps.",
        "    | “Words.” [1]",
        "    cited a.pdf 1, c.pdf 3",
        "    nearest c.pdf 3",
        "    acceptable a.pdf 1, b.pdf 2",
    ]


def test_only_requested_figures_are_judged() -> None:
    """Precision is 0.5 with one right figure of two shown."""
    assert figure_precision([result(frozenset({A}), kind=Kind.FIGURE, figures=(A, B))]) == 0.5
    assert (
        ANSWERS["figures nobody asked for"]([result(frozenset({A}), kind=Kind.NO_FIGURE, figures=(A,))]) == 1
    )


def test_removed_misses_have_confidence_bounds() -> None:
    """Half of their misses are fixed; equal results fix none."""
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
        "nearest": {"file": "x/b.pdf", "page": 7, "url": "http://localhost/v/t"},
        "figures": [],
        "milliseconds": {"total": 12},
    }
    reply = read_reply(line)
    assert reply.ranked == (("a.pdf", 1), ("a.pdf", 2))
    assert reply.marks == (Mark(("a.pdf", 2), "Twelve.", ((0.1, 0.2, 0.3, 0.4),)),)
    assert reply.is_claimed
    assert reply.nearest == ("b.pdf", 7)
    assert read_reply({**line, "nearest": None}).nearest is None


def test_passages_are_citations_that_claim_nothing() -> None:
    """Their quotes are checked against the pages like those of an answer."""
    place = {"file": "x/a.pdf", "page": 2}
    line = {
        "passages": [],
        "state": "passages",
        "text": "Nothing clearly answers. [1]",
        "citations": [{**place, "quote": "Twelve.", "boxes": [[0.1, 0.2, 0.3, 0.4]]}],
        "nearest": {**place, "url": "http://localhost/v/t"},
        "figures": [],
        "milliseconds": {"total": 12},
    }
    reply = read_reply(line)
    assert not reply.is_claimed
    assert len(reply.marks) == 1
    assert reply.offered == (("a.pdf", 2),)
