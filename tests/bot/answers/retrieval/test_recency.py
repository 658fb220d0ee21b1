"""Recency: among similarly relevant passages those of newer documents rank first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from fakes.core import ask, make_passage
from harness.tables import for_each

from bot.answer_settings import AnswerSettings
from bot.answers.retrieval.ranking import Ranking
from bot.core.models import Passage
from storage.models import MetadataField

TODAY = date(2026, 11, 22)


def dated(file: str, score: float, day: str | None, field: str = "effective") -> Passage:
    passage = make_passage(f"Backups are kept for a while, says {file}.", file=file, score=score)
    known = {field: MetadataField(field, day, 1, (), day)} if day else {}
    return replace(passage, publication=replace(passage.publication, metadata=known))


def order(passages: Sequence[Passage], **settings: float) -> list[Passage]:
    """Return the passages ranked by relevance, which is their score, and age."""
    ranking = Ranking(AnswerSettings(coverage_weight=0, named_weight=0, document_weight=0, **settings))
    publications = {passage.publication.id: passage.publication for passage in passages}
    return ranking.rank(ask("When do backups run?"), (), passages, publications.values(), TODAY).passages


def test_a_new_document_is_among_the_first_three() -> None:
    """All seven say nearly the same; the two of this year have the lowest scores."""
    old = [dated(f"old-{number}.pdf", 0.82 - number / 100, f"201{number}-03-01") for number in range(5)]
    new = [dated(f"new-{number}.pdf", 0.76 - number / 100, "2026-05-01") for number in range(2)]
    ranked = order([*old, *new])
    assert any(one.publication.file.startswith("new") for one in ranked[:3])


def test_a_clearly_better_old_passage_stays_first() -> None:
    """Age changes a score by a tenth at most."""
    ranked = order([dated("old.pdf", 0.95, "2010-01-01"), dated("new.pdf", 0.7, "2026-11-01")])
    assert [one.publication.file for one in ranked] == ["old.pdf", "new.pdf"]


@for_each(
    ("day", "score"),
    [
        (None, 0.5),
        ("2026-11-22", 0.55),
        ("2030-01-01", 0.55),
        ("2024-11-22", 0.5),
        ("1990-01-01", 0.45),
    ],
)
def test_age_counts_from_the_documents_date(day: str | None, score: float) -> None:
    """A future date counts as today, and two years count half; without a date only relevance counts."""
    (aged,) = order([dated("one.pdf", 0.5, day)])
    assert aged.score == pytest.approx(score, abs=0.001)


def test_an_undated_document_counts_from_its_arrival() -> None:
    """An ambiguous date counts as the earlier of its two readings instead."""
    undated = dated("one.pdf", 0.5, None)
    arrived = replace(undated.publication, arrived_at=datetime(2026, 11, 22, 12, tzinfo=UTC))
    unclear = {"effective": MetadataField("effective", "5/10/23", 1, ())}
    aged = order([replace(undated, publication=arrived)])
    aged += order([replace(undated, publication=replace(arrived, metadata=unclear))])
    assert [round(one.score, 3) for one in aged] == [0.55, 0.479]
    assert [dict(one.parts)["dated_by_arrival"] for one in aged] == [1.0, 0.0]


def test_the_last_update_replaces_a_missing_effective_date() -> None:
    """A document with only a last-updated date is as old as that."""
    (aged,) = order([dated("one.pdf", 0.5, "2026-11-22", "last_updated")], recency_weight=0.2)
    assert aged.score == pytest.approx(0.6)


def test_without_weight_the_order_is_unchanged() -> None:
    """A weight of 0 disables recency."""
    passages = [dated("old.pdf", 0.8, "2010-01-01"), dated("new.pdf", 0.79, "2026-11-01")]
    ranked = order(passages, recency_weight=0)
    assert [(one.publication, one.score) for one in ranked] == [
        (one.publication, one.score) for one in passages
    ]
