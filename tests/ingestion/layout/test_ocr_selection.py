"""Selection of pages for OCR, and when its text replaces the page's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness.lasting_pool import LastingPdf
from harness.tables import for_each
from sources import ROOT

from ingestion.layout.ocr_selection import is_garbled, pages_for_ocr, with_ocr
from storage.errors import PasswordProtected
from storage.models import Box, Page, WordBox
from storage.pdf.models import OcrPage, PdfText
from storage.settings import StorageSettings
from storage.text.word_boxes import WordMap

ENGLISH = (
    "The backup operator opens the console every morning and confirms that each job of the night has "
    "completed. A job that failed is started again once; when it fails a second time a ticket is opened. "
    "Nobody restores a database alone, and before a restore the present state is copied."
)
SENTENCES = {
    "German": "Die Sicherung der Daten erfolgt täglich um zwei Uhr und wird von einem Mitarbeiter geprüft.",
    "French": "La sauvegarde des données est effectuée chaque jour à deux heures et vérifiée par un agent.",
    "Polish": "Kopia zapasowa danych jest wykonywana codziennie o drugiej w nocy i sprawdzana.",
    "Finnish": "Tietojen varmuuskopiointi suoritetaan päivittäin kello kaksi yöllä ja se tarkistetaan.",
    "Czech": "Zálohování dat probíhá denně ve dvě hodiny ráno a kontroluje je obsluha, která vše zapíše.",
    "Vietnamese": "Việc sao lưu dữ liệu được thực hiện hằng ngày vào lúc hai giờ sáng và được kiểm tra.",
    "Russian": "Резервное копирование данных выполняется ежедневно в два часа ночи и проверяется оператором.",
    "parts": "BRKT ASSY XFMR PWR SPLY FRT PNL SCR HEX HD NUT WSHR LKG SPR PIN RTNG RING BRG SHFT SEAL GSKT",
    "numbers": "1,204.5 98.1 77.3 12.0 4,551.9 Q1 Q2 Q3 FY24 FY25 (1,220) 3.4% 12.9% USD EUR n/a 2024-01-15",
}


@for_each("name", SENTENCES)
def test_ordinary_text_of_any_language_is_not_garbled(name: str) -> None:
    """Covers accents, other alphabets, abbreviations and figures."""
    assert not is_garbled(" ".join([SENTENCES[name]] * 6), 0)


async def test_no_page_of_the_samples_needs_ocr() -> None:
    """Real PDFs with text need none, a page of symbols included."""
    files = [
        *(ROOT / "bot" / "cli" / "setup" / "samples").glob("*.pdf"),
        *(ROOT / "tests" / "pdfs").glob("*.pdf"),
    ]
    process, read = LastingPdf(StorageSettings()), 0
    for path in files:
        try:
            pdf = await process.read(path)
        except PasswordProtected:
            continue
        assert pages_for_ocr(pdf) == (), path.name
        read += 1
    assert read >= 4


@pytest.mark.parametrize("shift", [29, -1, -3, 3])
def test_text_with_shifted_letters_is_garbled(shift: int) -> None:
    """A subset font with its own encoding yields such text."""
    assert is_garbled("".join(char if char == " " else chr(ord(char) - shift) for char in ENGLISH * 2), 0)


def test_unmapped_glyphs_are_garbled_and_a_few_bullets_are_not() -> None:
    """The share of unreadable characters decides."""
    assert is_garbled("", 400)
    assert is_garbled("\ue041\ue042 " * 100, 200)
    assert not is_garbled(ENGLISH, 29)
    assert not is_garbled(ENGLISH * 5, 60)
    assert not is_garbled("", 0)


def pdf_of(*texts: str, ink: tuple[int, ...] = (), unmapped: tuple[int, ...] = ()) -> PdfText:
    pages = tuple(Page(n, "", 595, 842, text, words_of(text, n)) for n, text in enumerate(texts, start=1))
    return PdfText("", pages, ((),) * len(pages), 0, False, ink_pages=ink, unmapped=unmapped)


def words_of(text: str, page: int) -> WordMap:
    starts = [
        index for index in range(len(text)) if text[index] != " " and text[index - 1 : index] in ("", " ")
    ]
    return WordMap.pack(WordBox(at, at + 1, page, 0, Box(0, 0, 1, 1)) for at in starts)


def read_by_ocr(number: int, text: str) -> OcrPage:
    return OcrPage(number, text, words_of(text, number), (), 0.99)


def test_pages_with_ink_or_unreadable_text_need_ocr() -> None:
    """In page order; an empty page does not."""
    pdf = pdf_of("", ENGLISH, "", "x", ink=(1,), unmapped=(0, 0, 0, 90))
    assert pages_for_ocr(pdf) == (1, 4)
    assert pages_for_ocr(replace(pdf, unmapped=())) == (1,)


def test_ocr_replaces_missing_garbled_and_stamp_only_text() -> None:
    """Intact text stays unless OCR finds clearly more, and so does a page in which OCR finds none."""
    pdf = pdf_of("", "Exhibit 12", "A title over a photograph", "y", "", unmapped=(0, 0, 0, 80, 0))
    read = [
        read_by_ocr(1, "one"),
        read_by_ocr(2, "a whole page of words and Exhibit 12"),
        read_by_ocr(3, "A title over a photograph too"),
        read_by_ocr(4, "legible"),
        read_by_ocr(5, ""),
    ]
    mended = with_ocr(pdf, read)
    assert mended.ocr_pages == (1, 2, 4)
    assert [(page.number, page.width) for page in mended.pages] == [
        (page.number, page.width) for page in pdf.pages
    ]
    assert (mended.pages[1].words, mended.lines[1]) == (read[1].words, read[1].lines)
    assert [page.text for page in mended.pages] == [
        "one", "a whole page of words and Exhibit 12", "A title over a photograph", "legible", "",
    ]  # fmt: skip
    assert with_ocr(mended, []) == mended
