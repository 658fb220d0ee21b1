"""Document titles; leftovers of programs and templates are no titles."""

from __future__ import annotations

import pytest

from ingestion.layout.titles import choose_title, looks_like_title

LEFTOVERS = """
10811.exe
untitled
C:\\wp\\FILE94\\MT_r1.wpd [PFP#1181003885]
/srv/anna/plan 3
report.PDF
Document1
12/2020
Screenshot 2025-07-29 at 00.15.56.png
Bildschirmfoto 2024-03-01 um 10.22.31
Capture d’écran 2024-03-01 à 10.22.31
Captura de pantalla 2024-03-01 a las 10.22.31
Presentación de PowerPoint
Présentation PowerPoint
Apresentação do PowerPoint
PowerPoint-Präsentation
PowerPoint Presentation
ActiveReports Document
Crystal Reports Viewer
Präsentation1
Dokument1
Documento sin título
Unbenanntes Dokument
Sans titre
Microsoft Word - policy final v3.docx
Document Title
[Title]
[Company name]
<Insert title here>
Click to edit Master title style
Titel des Dokuments
Título do documento
Travel_Expenses_2024
40711_Manual
NOVEMBER 2000
September 5, 2018
Montag, 12. März 2024
le 3 février 2021
Chapter 1
Kapitel IV
1. Climate
2.1 Scope of work
a) First steps
Page 1 of 12
Table of Contents
Sommaire
WARNING
Attention !
Draft
12 Harbour Street, London NW1 4AB
Hauptstraße 14, 10827 Berlin
14 rue de Rivoli, 75001 Paris
Rotterdam, Kade 12, Tel. +31 10 555 0134
P.O. Box 1472
www.example.org
info@example.org
HANDBOOK Directors of Graduate Studies &
Regulations for the Use of the
the goods were delayed by the storm of last week
Please note that this form must be signed.
12345
"""
TITLES = """
Travel policy 2026
Handbook 2024
SOP-IT-04 Backup and Restore
Reisekostenrichtlinie
Manuel de l’employé
Política de viajes
Guida all’onboarding
PerksPlus Health and Wellness Program
Chapter 1: Rules of the Road
March of Dimes Report
May Day Safety Plan
Street Works Manual
What is covered?
iPhone guide
The 7 habits
就業規則
Title IX Policy
Document Control Procedure
Print Shop Price List
Report on the Fire of 12 May 2021
Page Layout Guide
Important Dates
"""


@pytest.mark.parametrize("text", LEFTOVERS.split("\n")[1:-1])
def test_leftovers_and_fragments_are_no_titles(text: str) -> None:
    """Covers programs and templates in seven languages, dates, addresses and fragments."""
    assert not looks_like_title(text)
    assert choose_title([text, "Fire Safety Plan"], "") == "Fire Safety Plan"
    assert choose_title([], text) == ""


@pytest.mark.parametrize("text", TITLES.split("\n")[1:-1])
def test_a_title_may_contain_words_of_a_leftover(text: str) -> None:
    """Titles, too, contain numbers, months, streets and kinds of document."""
    assert choose_title([text], "10811.exe") == text


@pytest.mark.parametrize(
    ("printed", "own", "title"),
    [
        (["Annual Fisheries Report"], "Fisheries template 7", "Annual Fisheries Report"),
        (["D E L I V E R Y  T E R M S"], "", "DELIVERY TERMS"),
        (["A Guide to\nSafe Lifting"], "", "A Guide to Safe Lifting"),
        (["DRYING"], "", ""),
        (["Contoso Electronics", "Plan and Benefit Packages"], "", "Plan and Benefit Packages"),
        (["Contoso Electronics"], "", "Contoso Electronics"),
        (["DRYING"], "Timber Handbook", "Timber Handbook"),
        (["The Safest Brakes", "Rail Brake Operators Guide"], "", "Rail Brake Operators Guide"),
        (["Brakes of Trams", "A Short Guide"], "", "Brakes of Trams"),
        (["Brakes of Trams", "See our guide"], "", "Brakes of Trams"),
        (["Brake Policy", "Rail Brake Operators Guide"], "", "Brake Policy"),
        (["1\n2\n3\n4\n5\nMany lines are a page"], "", ""),
        ([], "Backup  and recovery", "Backup and recovery"),
    ],
)
def test_the_printed_title_precedes_the_files_own(printed: list[str], own: str, title: str) -> None:
    """A single short word is not enough; letter-spaced words are joined; a manual's name beats a slogan."""
    assert choose_title(printed, own) == title
