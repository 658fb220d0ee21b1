"""Table header detection."""

from __future__ import annotations

import pytest

from ingestion.layout.table_headers import is_header

HEADERS = {
    "two columns of values": "Year | Visitors; 2019 | 812; 2020 | 64; 2021 | 305",
    "values of one unit": "Pump | Colour | Power; A | red | 12 kW; B | blue | 9.5 kW; C | red | 1,200 kW",
    "years above counts": "State | 1975 | 1988; Kerala | 5738 | 6633; Orissa | 3756 | 5540; Goa | 95 | 88",
    "an empty corner": " | Oslo | Bergen; Rain | often | always; Snow | yes | no",
    "sentences": "Animal | Place | Remedy; Tick | Grass | Wear long trousers.; Rat | Barn | Wash your hands.",
    "capitals": "TOOL | PRICE; Rotary hammer | 18.50 EUR; Chain saw | 29.90 EUR",
    "repeated": "Pump | Hue | Power; A | red | 12 kW; B | blue | 9 kW; C | red | 7 kW; Pump | Hue | Power",
}
ROWS = {
    "prices": "Rotary hammer RH-26 | 18.50 EUR; Tile cutter TC-900 | 24.00 EUR; Chain saw CS-40 | 29.90 EUR",
    "a first price in words": "Delivery | Free; Assembly | 40 EUR; Removal | 25 EUR; Storage | 12 EUR",
    "small letters": "Delivery | city | free; Assembly | sea | 40 EUR; Storage | - | 25 EUR; Tax | - | 9 EUR",
    "keys and values": "Model | Falcon; Rated flow | 310 l/min; Voltage | 400 V; Weight | 12 kg",
    "keys twice": "Model | Falcon | Colour | Red; Weight | 2 kg | Height | 9 cm; Power | 3 kW | Flow | 310 l",
    "sentences of a sheet": "Model | Falcon; Use | It digs in soil.; Care | Clean it each week.",
    "hours": "Monday | Closed; Tuesday | 9-17; Wednesday | 9-17; Thursday | 9-17",
    "addresses": "Anna Berg | Quay 7 | 3011 AB; Bo Lund | Mill lane | 3012 CD; Cy Moe | Hill 2 | 3013 EF",
    "words": "Anna Berg | Sales | Oslo; Bo Lund | Stores | Bergen; Cy Moe | Law | Narvik",
    "rows of another page": "Importe $ 10.000,00 | Juan; Importe $ 20.000,00 | Ana; Importe $ 5.000,00 | Luz",
    "contents": "1 | Scope | 2; 2 | Duties | 5; 3 | Records | 9",
    "years in all rows": "2019 | 2020; 2021 | 2022; 2023 | 2024",
    "a title over the columns": "Hire prices | ; Rotary hammer | 18.50 EUR; Chain saw | 29.90 EUR",
    "it returns": "One | Monthly | None; Two | Monthly | 5 EUR; Six | Monthly | 9 EUR; Ten | Yearly | 8 EUR",
}


def rows_of(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in row.split("|")] for row in table.split(";")]


def looks_like_header(table: str, bold: int = 0, larger: int = 0) -> bool:
    """True if the table's first row counts as a header; its first rows are `bold` or `larger`."""
    rows = rows_of(table)
    sizes = [12.0 if number < larger else 10.0 for number in range(len(rows))]
    return is_header(rows, bold=[number < bold for number in range(len(rows))], sizes=sizes)


@pytest.mark.parametrize("table", HEADERS.values(), ids=HEADERS)
def test_a_row_of_another_kind_is_a_header(table: str) -> None:
    """Shows that a header is detected without bold print, by the kinds of cells."""
    assert looks_like_header(table)


@pytest.mark.parametrize("table", ROWS.values(), ids=ROWS)
def test_a_row_of_the_same_kind_is_no_header(table: str) -> None:
    assert not looks_like_header(table)


def test_bold_or_large_words_are_a_header_and_values_are_not() -> None:
    """Applies to a first row that alone is bold or large."""
    assert looks_like_header(ROWS["words"], bold=1)
    assert looks_like_header(ROWS["words"], larger=1)
    assert not looks_like_header(ROWS["words"], bold=3)
    assert not looks_like_header(ROWS["prices"], bold=1)
