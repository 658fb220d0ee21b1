"""Metadata is extracted verbatim from labels, tables and running lines, or not at all."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from harness.tables import for_each
from samples.printed import BODY, read_pdf

from ingestion.extraction.dates import detect_day_first, find_date
from ingestion.extraction.metadata import read_metadata
from ingestion.extraction.metadata_patterns import shaped_ids
from storage.models import MetadataField

BLOCK = ("Standard Operating Procedure", "Backup of servers")


def fields(*pages: Sequence[str]) -> dict[str, MetadataField]:
    """Return the metadata of pages with these lines."""
    return read_metadata(read_pdf([[(line, BODY, False) for line in page] for page in pages]))


def read(*lines: str) -> dict[str, str]:
    """Return the metadata values of a first page with these lines."""
    return {name: field.value for name, field in fields([*lines, "1. Purpose", "Text."]).items()}


@for_each(
    ("line", "sop_id"),
    [
        ("SOP ID: SOP-IT-04", "SOP-IT-04"),
        ("SOP No.: SOP-QA-001", "SOP-QA-001"),
        ("SOP No. 01.v04", "01"),
        ("Document Number: SOP-8.5-001", "SOP-8.5-001"),
        ("Document ID  GDI-SOP0007_1", "GDI-SOP0007_1"),
        ("SOP No: QA/SOP/012", "QA/SOP/012"),
        ("SOP #: 12-A", "12-A"),
        ("SOP: 02 v1.03 (Revised: June 16, 2022)", "02"),
        ("Number: 07A v.02", "07A"),
        ("SOP ID: SOP\u2011IT\u201104", "SOP\u2011IT\u201104"),
        ("SOP-IT-04 Backup and Restore", "SOP-IT-04"),
        ("Department: IT  SOP ID: SOP-IT-04", "SOP-IT-04"),
        ("SOPs of the laboratory", None),
        ("SOPHIA is a person", None),
        ("SOP ID: TBD", None),
        ("Number: X", None),
        ("SOP ID:", None),
        ("SOP ID: 12 March 2024", None),
    ],
)
def test_the_sop_id_is_complete_or_missing(line: str, sop_id: str | None) -> None:
    """Covers forms found in real procedures, and words that only begin like one."""
    assert read(*BLOCK, line).get("sop_id") == sop_id


def test_only_a_procedure_has_a_procedure_number() -> None:
    """Shows that other documents' numbers are not mistaken for one."""
    assert "sop_id" not in read("Accident Report", "Number: NYC08CA055")


@for_each(
    ("line", "version"),
    [
        ("Version: 2.1", "2.1"),
        ("Version 2.1  Department: IT", "2.1"),
        ("Rev.: 03", "03"),
        ("Revision: B", "B"),
        ("Issue No: 7", "7"),
        ("Number: 07A v.02", "02"),
        ("Version: 12 January 2023", None),
        ("Version history", None),
        ("It runs on PostgreSQL v14 of the database", None),
        ("conversion: 3.5", None),
        ("Version: TBD", None),
        ("Revision Date: 5/10/23", None),
    ],
)
def test_a_version_is_a_number_after_its_label(line: str, version: str | None) -> None:
    """Shows that dates, versions of other products and words with that ending are none."""
    assert read(*BLOCK, line).get("version") == version


@for_each(
    ("line", "found"),
    [
        ("Version 2.1", {"version": "2.1"}),
        ("version 2.1", {"version": "2.1"}),
        ("VERSION – 4", {"version": "4"}),
        ("Rev 1.0", {"version": "1.0"}),
        ("Rev.3", {"version": "3"}),
        ("v 3.2.1", {"version": "3.2.1"}),
        ("v3.2.1 · Effective 2024-01-15", {"version": "3.2.1", "effective": "2024-01-15"}),
        ("Revision C", {"version": "C"}),
        ("SOP IT-04", {"sop_id": "SOP IT-04"}),
        ("sop-it-04", {"sop_id": "sop-it-04"}),
        ("sop it-04 rev 2", {"sop_id": "sop it-04", "version": "2"}),
        ("SOP No 12-A", {"sop_id": "12-A"}),
        ("Document ID QA/SOP/012 Version 7", {"sop_id": "QA/SOP/012", "version": "7"}),
        ("SOP-IT-04 Version 2.1", {"sop_id": "SOP-IT-04", "version": "2.1"}),
        ("SOP-IT-04, Rev. 2", {"sop_id": "SOP-IT-04", "version": "2"}),
        ("SOP-IT-04 · v2 · Internal", {"sop_id": "SOP-IT-04", "version": "2"}),
        ("Last Revision - Jan 15, 2024", {"last_updated": "Jan 15, 2024"}),
        ("last updated 15 Jan 2024", {"last_updated": "15 Jan 2024"}),
        ("Department - Human Resources", {"department": "Human Resources"}),
        ("Department — Quality", {"department": "Quality"}),
        ("Effective Date January 15, 2024", {"effective": "January 15, 2024"}),
        ("Effective 2024-01-15 | Version 2.1", {"effective": "2024-01-15", "version": "2.1"}),
        ("Version 2.1 (Revised: 5 March 2024)", {"version": "2.1", "last_updated": "5 March 2024"}),
        ("Version 2.1 Effective 2024/01/15", {"version": "2.1", "effective": "2024/01/15"}),
    ],
)
def test_a_label_needs_no_colon(line: str, found: dict[str, str]) -> None:
    """Labels with a dash or without punctuation, in any case, several on one line."""
    asked = ("sop_id", "version", "effective", "last_updated", "department")
    said = read("Backup of servers", line)
    assert {name: said[name] for name in asked if name in said} == found


@pytest.mark.parametrize(
    "line",
    [
        "Version 2.1 of this procedure replaces the one of last year.",
        "Version 2.1 replaces it.",
        "Version 2.1.",
        "Version 2.1, which was approved in May, is void.",
        "The new version 2.1",
        "Rev up the engine",
        "Issue a ticket",
        "Issue 3 tickets a day",
        "Version A of the form",
        "Effective 2024-01-15 the office moves to Delft.",
        "Department heads approve leave.",
        "Department of Human Resources",
        "Conversion 2.1",
        "Last revision of the tables was made by HR",
        "Versions 2 and 3 are void",
        "v. the Crown",
    ],
)
def test_a_sentence_is_no_label(line: str) -> None:
    """Shows that words of running text, even at the start of a line, are no labels."""
    assert not {"version", "effective", "last_updated", "department"} & read("Backup of servers", line).keys()


@for_each(
    ("lines", "effective", "day"),
    [
        (("Abteilung: Einkauf", "Gültig ab: 1. März 2024"), "1. März 2024", "2024-03-01"),
        (("Abteilung – Einkauf", "Gültig ab 01.03.2024"), "01.03.2024", None),
        (("Service : Achats", "Date d’entrée en vigueur : 1er mars 2024"), "1er mars 2024", "2024-03-01"),
        (("Service  Achats", "En vigueur le 13/03/2024"), "13/03/2024", "2024-03-13"),
        (("Departamento: Compras", "Vigente desde: 1 de marzo de 2024"), "1 de marzo de 2024", "2024-03-01"),
        (("Área - Compras", "Fecha de entrada en vigor - 2024-03-01"), "2024-03-01", "2024-03-01"),
        (("Reparto: Acquisti", "In vigore dal 1 marzo 2024"), "1 marzo 2024", "2024-03-01"),
        (("Departamento: Compras", "Em vigor desde: 1 de março de 2024"), "1 de março de 2024", "2024-03-01"),
        (("Afdeling: Inkoop", "Geldig vanaf 1 maart 2024"), "1 maart 2024", "2024-03-01"),
    ],
)
def test_labels_are_recognized_in_seven_languages(
    lines: Sequence[str], effective: str, day: str | None
) -> None:
    """Covers department and effective date, as printed."""
    found = fields(["Beschaffung von Waren", *lines, "1. Zweck", "Text."])
    assert (found["effective"].value, found["effective"].day) == (effective, day)
    assert found["department"].value in ("Einkauf", "Achats", "Compras", "Acquisti", "Inkoop")


@for_each(
    ("line", "name", "value"),
    [
        ("Letzte Änderung: 12.02.2024", "last_updated", "12.02.2024"),
        ("Zuletzt geändert am 12. Februar 2024", "last_updated", "12. Februar 2024"),
        ("Stand: Februar 2024", "last_updated", "Februar 2024"),
        ("Dernière mise à jour - 12 février 2024", "last_updated", "12 février 2024"),
        ("Última actualización: 12 de febrero de 2024", "last_updated", "12 de febrero de 2024"),
        ("Ultimo aggiornamento 12 febbraio 2024", "last_updated", "12 febbraio 2024"),
        ("Última atualização: 12 de fevereiro de 2024", "last_updated", "12 de fevereiro de 2024"),
        ("Laatst gewijzigd op 12 februari 2024", "last_updated", "12 februari 2024"),
        ("Ausgabe 3", "version", "3"),
        ("Versión 2.1", "version", "2.1"),
        ("Versione n° 4", "version", "4"),
        ("Versão: 2.0", "version", "2.0"),
        ("Versie 1.2", "version", "1.2"),
        ("Révision B", "version", "B"),
        ("Dokumentnummer: VA-07-03", "sop_id", "VA-07-03"),
        ("Código del documento: PR-COM-01", "sop_id", "PR-COM-01"),
        ("N° du document : PO-12", "sop_id", "PO-12"),
        ("Erstellt von: M. Okafor", "author", "M. Okafor"),
        ("Elaborado por: M. Okafor", "author", "M. Okafor"),
        ("Stand der Technik ist einzuhalten", "last_updated", None),
        ("Data protection is everybody’s duty", "last_updated", None),
    ],
)
def test_further_labels_are_recognized_in_seven_languages(line: str, name: str, value: str | None) -> None:
    """Covers change dates, versions, numbers and authors."""
    assert read("Beschaffung von Waren", line).get(name) == value


@for_each(
    ("line", "department"),
    [
        ("Department: IT", "IT"),
        ("IT Department", "IT"),
        ("Department  Human Resources", "Human Resources"),
        ("Department: IT Version: 2.0", "IT"),
        ("Dept.: Quality Assurance  Effective Date: 2024-03-01", "Quality Assurance"),
        ("Department head and HR decide.", None),
        ("Department: N/A", None),
        ("Ask the IT Department about it.", None),
    ],
)
def test_a_department_is_after_its_label_or_before_its_word(line: str, department: str | None) -> None:
    """Covers both forms, two fields on one line, and sentences that only mention a department."""
    assert read(*BLOCK, line).get("department") == department


@pytest.mark.parametrize("hyphen", ["\xad", "-"], ids=["joined by the reader", "printed"])
def test_a_title_joins_a_hyphenated_word(hyphen: str) -> None:
    """Shows a title of three lines below its label, the first of which ends within a word."""
    rows = (f"Title: Acid Di{hyphen}", "gestion of Soils for Trace", "Metal Analysis", "Approved by: Ada")
    pdf = read_pdf([[(row, BODY, False) for row in rows]])
    first, *rest = pdf.lines[0]
    beside = [replace(line, box=line.box._replace(x0=0.2)) for line in rest]
    title = read_metadata(replace(pdf, lines=((first, *beside),)))["title"]
    assert title.value == "Acid Digestion of Soils for Trace Metal Analysis"


def test_an_organisation_joins_a_hyphenated_word() -> None:
    assert read("Environmental Re\xad", "search Laboratory", "SOP ID: 12")["organisation"] == (
        "Environmental Research Laboratory"
    )


def test_a_labelled_title_must_look_like_one() -> None:
    """Shows that a template leftover after the label is no title."""
    assert read("Title: Using Balances")["title"] == "Using Balances"
    assert "title" not in read("Title: Document1")


def test_two_fields_on_one_line_are_two_values() -> None:
    """Shows that a value ends where the next label begins."""
    found = read(*BLOCK, "Department: IT Version: 2.0 Effective Date: 15 January 2024")
    assert (found["department"], found["version"], found["effective"]) == ("IT", "2.0", "15 January 2024")


def test_a_table_header_labels_the_values_below() -> None:
    found = read(*BLOCK, "Document ID  Version  Effective Date", "SOP-IT-04  3.2  2024-03-01")
    assert (found["sop_id"], found["version"], found["effective"]) == ("SOP-IT-04", "3.2", "2024-03-01")


@for_each(
    ("line", "name", "value"),
    [
        ("Effective: 2024-03-01", "effective", "2024-03-01"),
        ("Effective from: 1 March 2024", "effective", "1 March 2024"),
        ("Last updated: 2024-02-19", "last_updated", "2024-02-19"),
        ("Revision Date: June 16, 2022", "last_updated", "June 16, 2022"),
        ("Revised: 5/10/23", "last_updated", "5/10/23"),
        ("Next review: 2025-01-01", "last_updated", None),
        ("Date: 8/10/2016", "last_updated", None),
        ("Effective Date: 09/XX/2014", "effective", None),
        ("Effective in most cases", "effective", None),
        ("Author: M. Okafor", "author", "M. Okafor"),
        ("Prepared by: TBD", "author", None),
    ],
)
def test_kinds_of_dates_and_authors_are_distinguished(line: str, name: str, value: str | None) -> None:
    """Issue, review and effective dates are different fields."""
    assert read(*BLOCK, line).get(name) == value


def test_metadata_comes_from_running_lines_not_from_the_body() -> None:
    """Shows that a header of later pages counts, and a reference to another procedure does not."""
    further = ["SOP: SOP-QA-7 v1.1 (Revised: 2023-05-04)", *["See SOP-IT-04 for backups."] * 40]
    found = fields([*BLOCK, "1. Purpose"], further, further)
    assert {name: (one.value, one.page) for name, one in found.items() if name != "document_type"} == {
        "sop_id": ("SOP-QA-7", 2),
        "version": ("1.1", 2),
        "last_updated": ("2023-05-04", 2),
    }


def test_contradictory_values_are_dropped() -> None:
    assert "version" not in read(*BLOCK, "Version: 1.0", "Version: 2.0")


def test_every_value_has_its_boxes() -> None:
    """Shows that they are the value's boxes, not the label's."""
    (box,) = fields([*BLOCK, "Department: IT"])["department"].boxes
    (label,) = fields([*BLOCK, "IT Department"])["department"].boxes
    assert box.x0 > label.x0


@for_each(
    ("text", "day"),
    [
        ("2024-03-01", "2024-03-01"),
        ("1 March 2024", "2024-03-01"),
        ("1st Mar. 2024", "2024-03-01"),
        ("March 1, 2024", "2024-03-01"),
        ("24/2/2018", "2018-02-24"),
        ("2/24/2018", "2018-02-24"),
        ("2/2/18", "2018-02-02"),
        ("5/10/23", None),
        ("March 2024", None),
        ("31.2.2024", None),
    ],
)
def test_an_ambiguous_date_has_no_day(text: str, day: str | None) -> None:
    found = find_date(text)
    assert found is not None
    assert (found.day.isoformat() if found.day else None) == day


def test_one_unambiguous_date_decides_the_date_order() -> None:
    """Shows that a part above 12 anywhere decides for all dates of the document."""
    assert detect_day_first(["5/10/23", "24/2/2018"]) is True
    assert detect_day_first(["5/10/23", "2/24/2018"]) is False
    assert detect_day_first(["5/10/23"]) is None
    found = fields([*BLOCK, "Effective: 5/10/23", "Next review: 24/2/2025"])["effective"]
    assert found.day == "2023-10-05"


@pytest.mark.parametrize(
    "run", ["SOP-" * 5_000, "SOP" + "a" * 20_000, "SOP-a" * 4_000 + "_", "SOP/1" * 4_000 + "-"]
)
def test_a_near_match_of_a_document_number_is_not_slow(run: str) -> None:
    """Guards against catastrophic backtracking in the pattern of document numbers."""
    started = time.process_time()
    assert len(shaped_ids(run)) <= 1
    assert time.process_time() - started < 1
    assert [found.group() for found in shaped_ids("See SOP-IT-04, QA-SOP-12.3 and SOPs.")] == [
        "SOP-IT-04",
        "QA-SOP-12.3",
    ]


@for_each(
    ("text", "language"),
    [
        ("The backup of every server runs each night at two, and its log is read in the morning.", "en"),
        ("Die Sicherung aller Server läuft jede Nacht um zwei Uhr und wird am Morgen geprüft.", "de"),
        ("La sauvegarde des serveurs se fait chaque nuit à deux heures et on la contrôle le matin.", "fr"),
        ("Резервное копирование серверов выполняется каждую ночь в два часа, журнал читают утром.", "ru"),
        ("4711 0815 12.5 kg 7 m/s 99 % 12 3.4 88 17 4 21 9 6 5 4 3 2 1 0 11 12 13", None),
        ("Hello there", None),
    ],
)
def test_the_language_is_detected_from_a_page_of_words(text: str, language: str | None) -> None:
    """The first page with enough words decides; numbers and a few words do not."""
    found = fields(["Cover"], [text, text]).get("language")
    assert (found and (found.value, found.page)) == (language and (language, 2))
