"""The judge of retrieval without a model: passages or "not found"."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.core import BACKUPS, TRAVEL, HashEmbedder, ask, make_evidence, make_passage, make_publication

from bot.answers.generation.extractive import ExtractiveAnswerer
from bot.answers.generation.judge import Judge, Outcome, Verdict
from bot.core.models import Passage
from storage.models import Rung

FORM = "ELT:  |  | Engine Model:  | O-360\nRated Power:  | 180 hp | Registered Owner:  | Contoso"


async def judged(question: str, passage: Passage, judge: Judge | None = None) -> Verdict:
    """Return the verdict on a passage, by similarity if it has a vector."""
    asked = ask(question, BACKUPS, TRAVEL)
    if passage.vector is not None:
        asked = replace(asked, vector=(await HashEmbedder().aembed([question]))[0])
    ranked = await ExtractiveAnswerer(HashEmbedder()).rank(asked, make_evidence(passage))
    return (judge or Judge()).verdict(asked, [passage], ranked.candidates)


async def test_more_similar_evidence_is_more_likely_shown() -> None:
    """Shows both outcomes for the same question and less and less similar passages."""
    near, further, far = [
        await judged("When do backups run daily?", make_passage(text, vector=vector, score=score))
        for text, vector, score in ((BACKUPS, 0.8, 0.8), (BACKUPS, 0.0, 0.1), ("Cooks wear hats.", 0.0, 0.0))
    ]
    assert near.outcome is Outcome.PASSAGES
    assert near.probability > further.probability > far.probability
    assert far.outcome is Outcome.NOT_FOUND


@pytest.mark.parametrize(("threshold", "outcome"), [(0, Outcome.PASSAGES), (1, Outcome.NOT_FOUND)])
async def test_the_threshold_decides_between_passages_and_not_found(
    threshold: float, outcome: Outcome
) -> None:
    """Shows both extremes of the threshold."""
    judge = Judge(answer_probability=threshold)
    assert (await judged("When do backups run?", make_passage(BACKUPS, vector=0.6), judge)).outcome is outcome


async def test_a_missing_requested_number_lowers_the_confidence() -> None:
    """Shows that equal similarity counts less if no number is near the sentence."""
    passage = make_passage("The IT department checks the report of the backups.", vector=0.6)
    many, who = [await judged(question, passage) for question in ("How many backups?", "Whose backups?")]
    assert (many.signals.lacks, who.signals.lacks) == (True, False)
    assert many.probability < who.probability


async def test_an_empty_field_answers_nothing() -> None:
    """Shows that an empty label counts, and one with a value does not."""
    passage = make_passage(FORM, vector=0.6)
    assert (await judged("ELT?", passage)).signals.empty == 1
    assert (await judged("Rated power?", passage)).signals.empty == 0


async def test_passages_without_vectors_are_judged_by_words() -> None:
    """Shows that a channel that is still being read can answer, with limited confidence."""
    found, missed = [
        await judged("When do backups run?", make_passage(BACKUPS, vector=None, score=score))
        for score in (0.9, 0.1)
    ]
    assert found.signals.sentence is None
    assert (found.outcome, missed.outcome) == (Outcome.PASSAGES, Outcome.NOT_FOUND)


def test_nothing_to_quote_is_nothing_found() -> None:
    """Shows it for a passage with a high score."""
    asked, passage = ask("When do backups run?", BACKUPS), make_passage(BACKUPS, vector=0.9)
    assert Judge().verdict(asked, [passage], []).outcome is Outcome.NOT_FOUND


@pytest.mark.parametrize(
    ("code", "missing"), [("IT-17", ()), ("it 17", ()), ("IT-99-Z", ("IT-99-Z",)), ("SOP-IT-04", ())]
)
async def test_a_code_in_no_candidate_ends_in_not_found(code: str, missing: tuple[str, ...]) -> None:
    """The verdict names the code; a code in the document's name counts as found, however separated."""
    verdict = await judged(f"Who signs form {code}?", make_passage(BACKUPS, vector=0.9), Judge(0))
    assert verdict.missing_codes == missing
    assert verdict.outcome is (Outcome.NOT_FOUND if missing else Outcome.PASSAGES)


@pytest.mark.parametrize(
    ("question", "outcome"),
    [
        ("What does kwzpdf say?", Outcome.PASSAGES),
        ("NPRM?", Outcome.PASSAGES),
        ("What is Lindqvist?", Outcome.PASSAGES),
        ("What is the salary of Lindqvist?", Outcome.NOT_FOUND),
        ("What does the ceiling say?", Outcome.NOT_FOUND),
    ],
)
async def test_rare_terms_are_shown_wherever_they_occur(question: str, outcome: Outcome) -> None:
    """Shows that names, codes and words outside the language are never refused, unlike frequent words."""
    passage = make_passage("The NPRM of Lindqvist, kwzpdf, hangs on the ceiling.", vector=0.0, score=0.1)
    verdict = await judged(question, passage)
    assert (verdict.outcome, verdict.is_exact_hit) == (outcome, outcome is Outcome.PASSAGES)
    assert verdict.probability < verdict.passages_from


@pytest.mark.parametrize("rung", Rung)
async def test_a_document_without_vectors_uses_its_closest_sentence(rung: Rung) -> None:
    """Shows that a document still being read is compared, and a fully read one by its passages only."""
    far = make_passage("Cooks wear hats.", vector=0.0, file="b.pdf")
    near = replace(make_passage(BACKUPS), publication=replace(make_publication(), rung=rung), vector=None)
    asked = replace(ask("When do backups run?", BACKUPS), vector=(await HashEmbedder().aembed([BACKUPS]))[0])
    ranked = await ExtractiveAnswerer(HashEmbedder()).rank(asked, make_evidence(near, far))
    signals = Judge().verdict(asked, [far, near], ranked.candidates).signals
    assert signals.sentence is not None
    assert signals.passage == (signals.sentence if rung is Rung.QUICK else 0.0)
