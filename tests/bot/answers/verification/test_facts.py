"""Comparison of numbers, dates, times, units and codes by value, not by notation."""

from __future__ import annotations

from harness.tables import for_each

from bot.answers.verification.facts import unsupported

# A sentence and a source that supports it.
SAME = [
    ("It costs $1,200.", "Price: $1200.00"),
    ("It runs at 2 AM.", "daily at 2:00 AM"),
    ("It runs at 2:00.", "at 2 AM"),
    ("Kept for 2 years.", "kept for two years"),
    ("Effective January 15, 2024.", "effective 2024-01-15"),
    ("Effective 15.01.2024.", "effective 2024-01-15"),
    ("See sop-it-04.", "see SOP‑IT‑04"),
    ("1. Open the door.", "Open the door."),
    ("Costs 50% more.", "50 %"),
    ("At www.example.com today.", "see www.example.com"),
    ("Effective 3 March 2024.", "effective 2024-03-03"),
    ("Effective 2024-03-03.", "effective 3 March 2024"),
    ("Effective March 3rd, 2024.", "3 March 2024"),
    ("Am 3. März 2024.", "2024-03-03"),
    ("Gültig ab 03.03.2024", "ab 3. März 2024"),
    ("Le 3 mars 2024", "03/03/2024"),
    ("El 3 de marzo de 2024", "2024-03-03"),
    ("on 3/3/24", "3 March 2024"),
    ("1,000 people", "1000 people"),
    ("1000 people", "1,000 people"),
    ("1.000 Personen", "1000 Personen"),
    ("1 000 personnes", "1000 personnes"),
    ("1’000 Personen", "1000"),
    ("1000", "1 000"),
    ("5 days", "five days"),
    ("five days", "5 days"),
    ("twenty-five days", "25 days"),
    ("25 days", "twenty-five days"),
    ("fifty percent", "50 %"),
    ("50 percent", "fifty percent"),
    ("thirty days", "30 days"),
    ("90 days", "ninety days"),
    ("12.5 %", "12,5 %"),
    ("12,5 %", "12.5%"),
    ("€1.200,50", "EUR 1200.50"),
    ("$1.5 million", "$1,500,000"),
    ("5 km", "5km"),
    ("5km", "5 km"),
    ("2pm", "14:00"),
    ("14:00", "2 pm"),
    ("2:30 PM", "14:30"),
    ("the 3rd step", "step 3"),
    ("first step", "step 1"),
    ("Section 4.2", "section 4.2"),
    ("Rev. 2.1", "revision 2.1"),
    ("COVID-19", "covid 19"),
    ("SOP-IT-04", "SOP IT 04"),
    ("10-15 days", "10 to 15 days"),
    ("between 10 and 15", "10–15"),
    ("H2O", "H2O"),
    ("H2O", "H₂O"),
    ("12 m2", "12 m²"),
    ("14 days", "14¹ days"),
    ("320 EUR", "320¹ EUR"),
    ("2 x 10^5 cells", "2 x 10⁵ cells"),
    ("2.5 hours", "2½ hours"),
    ("0.25 ml", "¼ ml"),
    ("24/7", "24/7"),
    ("half", "0.5"),
    ("fünf Tage", "5 Tage"),
    ("5 Tage", "fünf Tage"),
    ("5 jours", "cinq jours"),
    ("5 días", "cinco días"),
    ("dreißig Tage", "30 Tage"),
    ("no one", "nobody"),
    ("One of the parents", "a parent"),
    ("one may apply", "you may apply"),
    ("Use Form W-4", "form W-4"),
    ("401(k) plan", "401k plan"),
    ("10x faster", "10 times faster"),
    ("May 5", "5 May"),
    ("You may 5 times", "may 5"),
    ("-5 °C", "-5°C"),
    ("minus 5", "-5"),
    ("2024 [2024]", "2024"),
    ("10,000.00", "10000"),
    ("0.5", "0,50"),
    ("½ hour", "0.5 hour"),
    ("August", "08"),
    ("In March 2024", "03/2024"),
    ("Version 2", "version 2.0"),
    ("8:00", "8 am"),
    ("08:00", "8:00"),
    ("5.0 mg", "5 mg"),
    ("1st", "first"),
    ("two", "2"),
    ("a dozen", "12"),
    ("3-day", "three-day"),
    ("two-year", "2-year"),
    ("Gilt seit dem 15. Januar 2024.", "effective 2024-01-15"),
    ("Gilt ab dem 3. März.", "It applies from March 3."),
    ("En vigueur depuis le 1er août 2024.", "in force since August 1, 2024"),
    ("Vigente desde el 2 de enero de 2024.", "in force since 2 January 2024"),
    ("In vigore dal 1 maggio 2024.", "effective May 1, 2024"),
    ("Em vigor desde 1º de março de 2024.", "effective March 1, 2024"),
    ("Geldig vanaf 5 oktober 2024.", "valid from 5 October 2024"),
    ("Das kostet höchstens 1.200,50 Euro.", "It costs at most 1,200.50 euros."),
    ("Cela coûte 1 200,50 euros au plus.", "It costs at most 1,200.50 euros."),
    ("It costs at most 1,200.50 euros.", "Cela coûte 1\u202f200,50 euros au plus."),
    ("Die Frist beträgt 4 Wochen.", "The notice period is four weeks."),
    ("It is kept for 12 years.", "Elle est conservée pendant douze ans."),
    ("Siehe dafür SOP-IT-04.", "see SOP-IT-04 for this"),
]

# A sentence and a source that does not support it.
OTHER = [
    ("It costs $1,300.", "Price: $1200.00"),
    ("It costs $12.", "Price: $1200"),
    ("Effective February 15, 2024.", "effective 2024-01-15"),
    ("See SOP-IT-05.", "see SOP-IT-04"),
    ("Version 2.2 applies.", "version 2.1"),
    ("Kept for 3 years.", "kept for two years"),
    ("In 2023 it rose.", "In 2024 it rose"),
    ("five days", "6 days"),
    ("thirty days", "20 days"),
    ("5 %", "5 days"),
    ("50 %", "0.50"),
    ("5 mg", "5 g"),
    ("5 kg", "5 lb"),
    ("$5", "5 days"),
    ("3 April 2024", "3 March 2024"),
    ("2024-03-05", "2024-05-03"),
    ("5 May 2024", "2024-04-05 and May 2023"),
    ("141 days", "14¹ days"),
    ("3201 EUR", "320¹ EUR"),
    ("105 cells", "10⁵ cells"),
    ("10 cells", "10⁵ cells"),
    ("10⁵ M", "10⁻⁵ M"),
    ("21 hours", "2½ hours"),
    ("12.5", "125"),
    ("1,5", "15"),
    ("1.5", "15"),
    ("SOP-IT-05", "SOP-IT-04"),
    ("-5 °C", "5 °C"),
    ("10 million", "10"),
    ("10 million", "10 thousand"),
    ("2 AM", "2 PM"),
    ("14:00", "2 am"),
    ("3 weeks", "3 days"),
    ("€5", "$5"),
    ("twenty days", "two days"),
    ("fünf Tage", "sechs Tage"),
    ("cinq jours", "six jours"),
    ("in March", "in April"),
    ("x1", "x2"),
    ("4.2", "4 and 2"),
    ("Gilt ab dem 3. März.", "It applies from May 3."),
    ("Das kostet höchstens 1.200,50 Euro.", "It costs at most 1,200.05 euros."),
    ("Das ist höchstens 1,2 Meter hoch.", "It is at most 12 metres high."),
    ("Die Frist beträgt 3 Wochen.", "The notice period is four weeks."),
    ("Siehe dafür SOP-IT-05.", "see SOP-IT-04 for this"),
]


@for_each(("said", "source"), SAME)
def test_facts_in_another_notation_are_supported(said: str, source: str) -> None:
    """Separators, number words, formats, split codes and equivalent units are normalized."""
    assert unsupported(said, [source]) == []


@for_each(("said", "source"), OTHER)
def test_differing_facts_are_reported(said: str, source: str) -> None:
    """Detects a number, unit, sign, magnitude, date, time, code or version not in the source."""
    assert unsupported(said, [source])


def test_a_number_in_a_cell_has_any_unit() -> None:
    """A value without a unit may have the sentence's unit, as a table header may give it."""
    assert unsupported("It takes 5 days.", ["| Days |\n| --- |\n| 5 |"]) == []
    assert unsupported("It cost 10 million dollars.", ["In millions of dollars\nCosts 10"]) == []


def test_counted_subjects_need_no_source() -> None:
    """A sentence may count its subjects; a number word with a unit is a fact."""
    assert unsupported("Both of the two plans cover one of them.", ["Standard and Plus."]) == []
    assert unsupported("It takes two weeks.", ["Standard and Plus."]) == ["two"]


def test_a_month_with_days_matches_only_these() -> None:
    """Enumerated days each count; a month without a day matches any."""
    assert unsupported("On 5 May.", ["From 4 to 8 May; on 5 and 12 May"]) == []
    assert unsupported("On 5 May.", ["Dates in May 2024: 3, 5, 8"]) == []
    assert unsupported("On 7 May.", ["On 3 May, seats 7"]) == ["7 May"]
    assert unsupported("Marked 5 times, it decreased 5 %.", ["5 marks, 5 %"]) == []
