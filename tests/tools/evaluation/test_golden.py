"""The golden questions: complete labels, split by document into a tuning half and a test half."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

from tools.evaluation.golden import Golden, Kind, label_errors, load_questions, some_of_each_kind

QUESTIONS = load_questions()


def halves(question: Golden) -> set[tuple[str, str]]:
    return {(document, question.half) for document in question.documents}


def test_there_are_enough_of_every_kind() -> None:
    """250 with pages and 60 without an answer, half of these about an existing document."""
    kinds = Counter(one.kind for one in QUESTIONS if not one.twin)
    assert sum(one.is_answerable for one in QUESTIONS if not one.twin) >= 250
    assert kinds[Kind.ABSENT_HERE] >= 30
    assert kinds[Kind.OFF_SUBJECT] >= 30
    assert kinds[Kind.ACROSS] >= 40
    assert kinds[Kind.FOLLOWUP] >= 30
    assert kinds[Kind.FIGURE] + kinds[Kind.NO_FIGURE] >= 20


def test_enough_questions_have_no_answer_in_either_half() -> None:
    """60 in each half, 18 of them in each collection except the miscellaneous files."""
    absent = [one for one in QUESTIONS if not one.is_answerable and one.id.startswith("abs-")]
    assert len(absent) >= 120
    halves_of = Counter(one.half for one in absent)
    places = Counter((one.half, one.collection) for one in absent)
    assert min(halves_of.values()) >= 60
    assert len(places) == 6
    assert min(places.values()) >= 18


def test_a_misspelt_question_is_one_of_the_others() -> None:
    """40 misspelt questions, each equal to another one of the same half except for its spelling."""
    known = {one.id: one for one in QUESTIONS if not one.twin}
    misspelt = [one for one in QUESTIONS if one.twin]
    assert len(misspelt) >= 40
    assert len({one.twin for one in misspelt}) == len(misspelt)
    for one in misspelt:
        spelt = known[one.twin]
        assert one.text != spelt.text, one.id
        assert replace(one, id=spelt.id, text=spelt.text, twin="") == spelt, one.id


def test_no_document_is_in_both_halves() -> None:
    """Shows also that no question is asked twice."""
    places = Counter(document for document, _ in set().union(*map(halves, QUESTIONS)))
    assert [document for document, count in places.items() if count > 1] == []
    assert len({one.id for one in QUESTIONS}) == len({(one.collection, one.text) for one in QUESTIONS})


def test_every_answerable_question_is_fully_labelled() -> None:
    """Pages, evidence and facts; an unanswerable one has none of them."""
    for one in QUESTIONS:
        is_told = bool(one.needs and (one.figures or (one.evidence and one.answer)))
        assert is_told == (one.kind not in (Kind.ABSENT_HERE, Kind.OFF_SUBJECT)), one.id
        assert bool(one.history) == (one.kind is Kind.FOLLOWUP), one.id
        assert len(one.needs) >= 2 or one.kind is not Kind.ACROSS, one.id


def test_evidence_missing_on_its_page_is_reported() -> None:
    """Labels are checked against the pages before any measurement."""
    one = next(one for one in QUESTIONS if one.evidence)
    (page, text), *_ = one.evidence
    others = {place: words for place, words in one.evidence[1:]}
    assert not label_errors([one], {**others, page: f"Before. {text} After."})
    assert len(label_errors([one], {**others, page: "Something else."})) == 1


def test_the_sample_of_each_kind_is_deterministic() -> None:
    """Three of every kind in both halves, in any order of the questions."""
    some = some_of_each_kind(QUESTIONS, 3)
    assert some == some_of_each_kind(reversed(QUESTIONS), 3)
    counted = Counter((one.half, one.kind) for one in some if not one.twin)
    assert counted == {which: 3 for which in {(one.half, one.kind) for one in QUESTIONS}}


def test_a_misspelt_question_is_chosen_with_its_twin() -> None:
    """The twin is chosen in addition, since the pair is needed to measure anything."""
    right = next(one for one in QUESTIONS if not one.twin)
    wrong, lonely = (replace(right, id=f"{right.id}-{twin}", twin=twin) for twin in (right.id, "another"))
    assert some_of_each_kind([wrong, lonely, right], 1) == [right, wrong]


def test_a_line_names_its_correctly_spelt_twin(tmp_path: Path) -> None:
    """The field is "spelt"; most lines have none."""
    line = {"half": "test", "collection": "box", "kind": "single", "question": "Wich?"}
    lines = [{"id": "q-1", **line}, {"id": "q-2", **line, "spelt": "q-1"}]
    (tmp_path / "box.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert [one.twin for one in load_questions(tmp_path)] == ["", "q-1"]
