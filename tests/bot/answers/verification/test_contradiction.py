"""Contradiction detection: a sentence that negates its quote is found, a paraphrase is not."""

from __future__ import annotations

from fakes.core import make_evidence, make_passage, verify_quotes, verify_sentences
from harness.tables import for_each

from bot.answers.verification.claims import locate
from bot.answers.verification.contradiction import ASSERTS, DENIES, find_contradiction
from bot.core.models import Claim, Draft, Passage, Quote


def fault(said: str, passage: Passage | str, quote: str | None = None) -> str | None:
    """Return the fault of a sentence that quotes all of a passage, or the given words of it."""
    found = make_passage(passage) if isinstance(passage, str) else passage
    located = locate(Quote(1, quote or found.text), make_evidence(found))
    assert located is not None
    return find_contradiction(said, [located])


# A sentence and its exact opposite.
TURNED = [
    ("Contractors may enter the lab.", "Contractors may not enter the lab."),
    ("Smoking is allowed.", "Smoking is not permitted."),
    ("The fee is refundable.", "The fee is not refundable."),
    ("The fee is refundable.", "The fee isn't refundable."),
    ("Employees must wear a badge.", "Employees do not have to wear a badge."),
    ("A badge is required.", "A badge is not required."),
    ("Visitors can use the car park.", "Visitors can't use the car park."),
    ("The plan covers water damage.", "The plan never covers water damage."),
    ("Pets may enter the building.", "No pets may enter the building."),
    ("There is a fee for children.", "There is no fee for children."),
    ("Tickets are refundable.", "Tickets are non-refundable."),
    ("Contractors may enter after 6 pm.", "Contractors may not enter after 6 pm."),
    ("You may carry over more than 5 days.", "You may not carry over more than 5 days."),
    ("Reports are due later than 5 May.", "Reports are due no later than 5 May."),
    ("Visitors may enter the lab.", "Neither contractors nor visitors may enter the lab."),
    ("The form is used.", "The form is no longer used."),
    ("Contractors may enter.", "Employees, not contractors, may enter."),
    ("Visitors may park here.", "Visitors may not park here, but they may enter the lab."),
    ("Smoking is allowed.", "Smoking | No"),
    ("Besucher dürfen das Labor betreten.", "Besucher dürfen das Labor nicht betreten."),
    ("Es besteht Anspruch auf Erstattung.", "Es besteht kein Anspruch auf Erstattung."),
    ("Rauchen ist gestattet.", "Rauchen ist nicht gestattet."),
    ("Die Gebühr wird erstattet.", "Die Gebühr wird niemals erstattet."),
    ("Les visiteurs peuvent entrer dans le laboratoire.",
     "Les visiteurs ne peuvent pas entrer dans le laboratoire."),
    ("Les frais sont remboursables.", "Les frais ne sont jamais remboursables."),
    ("Los visitantes pueden entrar en el laboratorio.", "Los visitantes no pueden entrar en el laboratorio."),
    ("Las tasas son reembolsables.", "Las tasas no son reembolsables."),
    ("I visitatori possono entrare nel laboratorio.", "I visitatori non possono entrare nel laboratorio."),
    ("Os visitantes podem entrar no laboratório.", "Os visitantes não podem entrar no laboratório."),
    ("Bezoekers mogen het laboratorium betreden.", "Bezoekers mogen het laboratorium niet betreden."),
    ("De kosten worden vergoed.", "De kosten worden niet vergoed."),
]  # fmt: skip


@for_each(("said", "source"), TURNED)
def test_a_dropped_negation_is_detected(said: str, source: str) -> None:
    """A negated quote does not support an assertion."""
    assert fault(said, source) == ASSERTS


@for_each(("source", "said"), TURNED)
def test_an_added_negation_is_detected(source: str, said: str) -> None:
    """An asserting quote does not support a denial, if it covers all that is denied."""
    assert fault(said, source) == (None if said in BROADER else DENIES)


# Not sentences of a model, or broader than their source.
BROADER = {
    "Smoking | No",
    "Neither contractors nor visitors may enter the lab.",
}

SAME = [
    # refused, excluded, excepted
    ("Smoking is prohibited.", "You must not smoke: smoking is not permitted."),
    ("It is prohibited to enter the lab.", "Nobody must enter the lab."),
    ("You must not enter the lab.", "It is forbidden to enter the lab."),
    ("Contractors may not enter without a badge.", "Contractors may enter with a badge."),
    ("Visitors may not enter unless escorted.", "Visitors may enter if they are escorted."),
    ("All staff may park here except contractors.", "Contractors may not park here; all other staff may."),
    ("Only employees may enter the lab.", "Visitors and contractors may not enter the lab; employees may."),
    ("Delivery is free of charge.", "There is no charge for delivery."),
    ("The fee is waived for children.", "There is no fee for children."),
    ("Water damage is excluded.", "Water damage is not covered."),
    ("The form is optional.", "The form is not required."),
    ("Applications are rejected after 5 May.", "Applications are not accepted after 5 May."),
    ("The invoice is unpaid.", "The invoice is not paid."),
    ("Unaccompanied visitors may not enter.", "Accompanied visitors may enter."),
    ("It is impossible to open the valve.", "It is not possible to open the valve."),
    ("The store is closed on Sundays.", "The store is not open on Sundays."),
    # idioms
    ("The offer includes breakfast and parking.", "The offer includes not only breakfast but also parking."),
    ("Send the form to No. 5 Main Street.", "The form goes to number 5 Main Street."),
    ("The claim must arrive by 5 May.", "The claim must arrive no later than 5 May."),
    ("At least 5 days are needed.", "No fewer than 5 days are needed."),
    ("At most 3 guests are allowed.", "No more than 3 guests are allowed."),
    ("The dose is at most 5 mg.", "Do not exceed a dose of 5 mg."),
    ("Sign the form.", "Do not forget to sign the form."),
    ("Call the desk at any time.", "Do not hesitate to call the desk at any time."),
    ("The manual applies to all sites.", "No doubt the manual applies to all sites."),
    ("The rule applies to all staff.", "The rule applies to all staff, whether or not they are contractors."),
    ("The deductible does not apply.", "Deductible: not applicable"),
    ("Some employees may park here.", "Not all employees may park here."),
    # double negation
    ("It is common to sign twice.", "It is not uncommon to sign twice."),
    ("No employee may leave the form unsigned.", "Each employee must sign the form."),
    ("If you have no badge, you may not enter.", "You may enter if you have a badge."),
    # limits of time and size
    ("The store is not open before 9.", "The store opens at 9."),
    ("The fee is refundable within 30 days.", "The fee is not refundable after 30 days."),
    ("The lab opens at 8.", "The lab does not open until 8."),
    # the negation applies to something else
    ("Close the lid.", "Do not open the valve; close the lid."),
    ("Close the lid.", "Do not open the valve and close the lid."),
    ("Press the reset button.", "If the pump does not start, press the reset button."),
    ("Employees must sign in.", "Employees who do not have a badge must sign in."),
    ("Employees may apply.", "Employees who are not citizens may apply."),
    ("The owner signs the form.", "It is not the manager but the owner who signs the form."),
    ("The warranty covers theft.", "The warranty does not cover water damage; it covers theft."),
    ("Adults pay a fee of 5 EUR.", "There is no fee for children, adults pay 5 EUR."),
    ("The lab is open to employees.", "The lab is open to employees and not to contractors."),
    ("Members may enter.", "Members and non-members may enter."),
    ("The guard signs.", "If no supervisor is present, the guard signs."),
    ("The copay is $20.", "Deductible | Not applicable | Copay | $20"),
    ("Vaping is allowed.", "Smoking | No | Vaping | Yes"),
    ("The badge is kept at the desk.", "Nobody but the guard keeps the badge at the desk."),
    ("Parking is not included.", "Breakfast is included; parking costs extra."),
    # the same negation in other words
    ("Contractors can't enter the lab.", "Contractors may not enter the lab."),
    ("No, contractors may not enter the lab.", "Contractors may not enter the lab."),
    ("No, contractors must be accompanied.", "Contractors must be accompanied."),
    ("Yes, contractors may enter the lab.", "Contractors may enter the lab."),
    ("Do not close the valve.", "Do not open, close or move the valve."),
    ("Visitors cannot enter.", "Visitors are not permitted to enter the lab."),
    ("A badge need not be worn.", "A badge may be worn."),
    ("The rule is no longer in force.", "The rule is not in force any more."),
    # other languages
    ("Das Betreten des Labors ist verboten.", "Das Labor darf nicht betreten werden."),
    ("Besucher dürfen das Labor nicht ohne Ausweis betreten.",
     "Besucher dürfen das Labor mit Ausweis betreten."),
    ("Der Inhaber unterschreibt.", "Nicht der Leiter, sondern der Inhaber unterschreibt."),
    ("Der Antrag muss bis zum 5. Mai eingehen.", "Der Antrag darf nicht nach dem 5. Mai eingehen."),
    ("Es gibt Frühstück und Abendessen.", "Es gibt nicht nur Frühstück, sondern auch Abendessen."),
    ("Il est interdit de fumer dans le bâtiment.", "Il ne faut pas fumer dans le bâtiment."),
    ("Les visiteurs entrent seulement par la porte B.", "Les visiteurs n'entrent que par la porte B."),
    ("Está prohibido fumar en el edificio.", "No está permitido fumar en el edificio."),
    ("Los visitantes no pueden entrar sin tarjeta.", "Los visitantes pueden entrar con tarjeta."),
    ("Nadie puede entrar.", "No puede entrar nadie."),
    ("È vietato fumare nell'edificio.", "Non è consentito fumare nell'edificio."),
    ("Os visitantes podem entrar em qualquer sala.",
     "Os visitantes podem entrar no laboratório e em qualquer sala."),
    ("Het is verboden te roken.", "Er mag niet gerookt worden."),
    # no comparison across languages
    ("Besucher dürfen das Labor nicht betreten.", "Visitors may not enter the lab."),
    ("Visitors may enter Labor 5.", "Besucher dürfen Labor 5 nicht betreten."),
]  # fmt: skip


@for_each(("said", "source"), SAME)
def test_a_paraphrase_is_no_contradiction(said: str, source: str) -> None:
    """Paraphrases, conditions, comparisons and idioms are accepted."""
    assert fault(said, source) is None


def test_the_whole_sentence_around_a_quote_counts() -> None:
    """A quote that ends before the negation, or begins after it, does not hide it."""
    for text in ("No contractors may enter the lab.", "It is not true that contractors may enter the lab."):
        assert fault("Contractors may enter the lab.", text, "contractors may enter the lab") == ASSERTS


def test_the_lead_of_a_list_counts() -> None:
    """A list item is read with its lead."""
    text = "Visitors may not:\n• enter the lab\n• park in the yard"
    assert fault("Visitors may not enter the lab.", text, "enter the lab") is None
    assert fault("Visitors may enter the lab.", text, "enter the lab") == ASSERTS


def test_a_prohibiting_heading_supports_a_denial() -> None:
    """Text below "Prohibited" may be denied, although its own words do not."""
    below = make_passage("Bring food into the lab.", heading_path=("Prohibited actions",))
    assert fault("You must not bring food into the lab.", below) is None
    assert fault("You must not bring food into the lab.", "Bring food into the lab.") == DENIES


def test_a_list_without_a_lead_sentence_is_not_checked() -> None:
    """Text above an item may deny it, whatever its layout."""
    text = "The following is not covered\n\n• damage caused by water\n• damage caused by frost"
    assert fault("Damage is not caused by frost.", text, "damage caused by frost") is None


def test_another_sentence_of_the_passage_may_agree() -> None:
    """The quote was badly chosen, but the passage supports the sentence."""
    text = "Contractors may enter the yard. Contractors may not enter the yard or the lab."
    assert fault("Contractors may not enter the yard.", text, "Contractors may enter the yard") is None


def test_questions_are_no_assertions() -> None:
    """A question in an FAQ is no assertion."""
    text = "May contractors enter the lab? No, contractors must stay in the yard."
    assert fault("Contractors may not enter the lab.", text) is None


def test_a_contradicting_sentence_is_dropped_with_its_fault() -> None:
    """The sentence is dropped from the answer with its fault; a verbatim quote is not checked."""
    evidence = make_evidence(make_passage("Contractors may not enter the lab."))
    claim = Claim("Contractors may enter the lab.", (Quote(1, "Contractors may not enter the lab"),))
    assert verify_sentences(Draft((claim,)), evidence).faults == (ASSERTS,)
    assert verify_quotes(Draft((claim,), verbatim=True), evidence).faults == ()
