"""Passages for programs: each is cited by its own best sentence, with its page and link."""

from __future__ import annotations

from fakes.core import BACKUPS, TRAVEL, Register, Shelf, World, make_passage, make_publication


def world(*texts: tuple[str, str]) -> World:
    """Return a channel with a passage per (file, text)."""
    passages = [make_passage(text, file=file, title=file, page=3) for file, text in texts]
    return World(Shelf(passages), Register(publications=[make_publication(file, file) for file, _ in texts]))


async def test_each_passage_is_cited_by_its_best_sentence() -> None:
    """The best passage comes first; the sentence has its page, its boxes and a link of its own."""
    office = world(("travel.pdf", TRAVEL), ("backup.pdf", BACKUPS))
    found = await office.answering().search(office.question("When do backups run?"), 5)
    best = found[0]
    assert best.citation.file == "backup.pdf"
    assert best.citation.quote == "Backups run daily at 2:00 AM."
    assert (best.citation.page, bool(best.citation.boxes), best.text) == (3, True, BACKUPS)
    assert best.document == make_publication("backup.pdf").document_id
    assert len({one.citation.url for one in found}) == len(found)


async def test_a_heading_is_no_quote_beside_a_sentence() -> None:
    """A passage that has nothing but a heading is cited whole."""
    office = world(("a.pdf", "Backups\n\nThey run every night at two o'clock."), ("b.pdf", "Backups"))
    found = await office.answering().search(office.question("backups"), 5)
    quotes = {one.citation.file: one.citation.quote for one in found}
    assert quotes["a.pdf"] == "They run every night at two o'clock."
    assert quotes["b.pdf"] == "Backups"


async def test_no_more_passages_are_returned_than_asked_for() -> None:
    """Stores no citation of the others."""
    office = world(*((f"{number}.pdf", f"{BACKUPS} {number}") for number in range(5)))
    assert len(await office.answering().search(office.question("backups"), 2)) == 2
    assert len(office.register.kept) == 2
