"""Make the PDFs of the tests: ``python make_pdfs.py FOLDER``.

A separate program, because the test process, like the service, never loads PyMuPDF.
"""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path

import pymupdf

A4 = (595, 842)
LIGATURES = "The office staff files the affidavit."


def main(folder: Path) -> None:
    """Write every file, and ``ink.json`` with the ink boxes of a renderer."""
    (folder / "ink.json").write_text(json.dumps(make_turned(folder)))
    for make in (
        make_plain,
        make_hidden,
        make_outside,
        make_active,
        make_scan,
        make_hyphens,
        make_labels,
        make_locked,
        make_bad_page,
        make_notices,
    ):
        make(folder)
    make_foreign(folder)
    (folder / "forms.pdf").write_bytes(form_bomb())
    (folder / "glyphs.pdf").write_bytes(glyph_bomb())


def save(document: pymupdf.Document, folder: Path, name: str, **options: object) -> None:
    document.save(folder / name, **options)


def make_turned(folder: Path) -> list[list[float]]:
    """Make pages with one word, rotated and cropped in every way; return the ink's box on each."""
    document = pymupdf.open()
    for turn in (0, 90, 180, 270):
        for crop in (None, (100, 150, 500, 700)):
            page = document.new_page(width=A4[0], height=A4[1])
            page.insert_text((180, 300), "ABSOLUTELY", fontsize=30)
            if crop:
                page.set_cropbox(pymupdf.Rect(crop))
            page.set_rotation(turn)
    save(document, folder, "turned.pdf")
    with pymupdf.open(folder / "turned.pdf") as reopened:
        return [ink(page) for page in reopened]


def ink(page: pymupdf.Page) -> list[float]:
    """Return the box of all dark pixels of the rendered page, as fractions of it."""
    picture = page.get_pixmap(dpi=144, colorspace=pymupdf.csGRAY)
    dark = [divmod(index, picture.stride) for index, value in enumerate(picture.samples) if value < 128]
    rows, columns = zip(*dark, strict=True)
    return [
        min(columns) / picture.width, min(rows) / picture.height,
        (max(columns) + 1) / picture.width, (max(rows) + 1) / picture.height,
    ]  # fmt: skip


def make_plain(folder: Path) -> None:
    document = pymupdf.open()
    for number in range(1, 4):
        page = document.new_page()
        page.insert_text((72, 100), f"Backups on page {number}", fontsize=20)
        page.insert_text((72, 140), "Backups run daily at 2:00 AM. " + LIGATURES, fontsize=11)
        page.insert_text((72, 180), "Employee only", fontname="hebo", fontsize=11)
        page.insert_text((300, 180), "$45.00", fontsize=11)
    document.set_metadata({"title": "Backup plan  2024"})
    save(document, folder, "plain.pdf")


def make_hidden(folder: Path) -> None:
    """Make a page with two visible lines and five kinds of invisible ones."""
    page = (document := pymupdf.open()).new_page()
    page.insert_text((72, 100), "visible words")
    page.insert_text((72, 120), "secret invisible", render_mode=3)
    page.insert_text((72, 140), "secret transparent", fill_opacity=0)
    page.insert_text((72, 160), "secret white", color=(1, 1, 1))
    page.insert_text((72, 180), "secret tiny", fontsize=0.5)
    page.insert_text((-300, 200), "secret outside")
    page.draw_rect((60, 230, 300, 260), fill=(0, 0, 0.4))
    page.insert_text((72, 250), "white heading", color=(1, 1, 1))
    save(document, folder, "hidden.pdf")


def make_outside(folder: Path) -> None:
    """Make pages of all rotations with two visible words; three are outside the crop box, two clipped."""
    document = pymupdf.open()
    for turn in (0, 90, 180, 270):
        page = document.new_page(width=A4[0], height=A4[1])
        page.insert_text((180, 300), "visible words")
        page.insert_text((180, 60), "secret trimmed off")
        page.insert_text((180, 400), "secret clipped")
        clip = b"q 0 0 9 9 re W n " + document.xref_stream(page.get_contents()[-1]) + b" Q"
        document.update_stream(page.get_contents()[-1], clip)
        page.set_cropbox(pymupdf.Rect(100, 150, 500, 700))
        page.set_rotation(turn)
    save(document, folder, "outside.pdf")


def make_active(folder: Path) -> None:
    """Make a page with an attachment, and a script and a program that run on opening."""
    document = pymupdf.open()
    document.new_page().insert_text((72, 100), "visible words")
    document.embfile_add("run.pdf", (folder / "plain.pdf").read_bytes())
    script = "<</S/JavaScript/JS(while \\(true\\) {})/Next<</S/Launch/F(/bin/sh)>>>>"
    document.xref_set_key(document.pdf_catalog(), "OpenAction", script)
    document.xref_set_key(document.pdf_catalog(), "AA", f"<</WC{script}>>")
    save(document, folder, "active.pdf")


def make_scan(folder: Path) -> None:
    """Make an image of a whole page with an invisible OCR layer."""
    page = (document := pymupdf.open()).new_page()
    picture = pymupdf.Pixmap(pymupdf.csGRAY, pymupdf.IRect(0, 0, 100, 140))
    picture.clear_with(200)
    page.insert_image(page.rect, pixmap=picture)
    page.insert_text((72, 100), "scanned words", render_mode=3)
    save(document, folder, "scan.pdf")


def make_hyphens(folder: Path) -> None:
    page = (document := pymupdf.open()).new_page()
    lines = "A follow-up visit needs docu-", "mentation. See SOP-IT-", "04 and each follow-", "up in 2019-"
    text = "\n".join([*lines, "2020. Im-", "portant: X-", "rays."])
    page.insert_text((72, 100), text, fontsize=11)
    save(document, folder, "hyphens.pdf")


def make_labels(folder: Path) -> None:
    document = pymupdf.open()
    for _ in range(3):
        document.new_page().insert_text((72, 100), "numbered")
    document.set_page_labels([
        {"startpage": 0, "style": "r", "firstpagenum": 4},
        {"startpage": 1, "prefix": "A-", "style": "D", "firstpagenum": 3},
    ])  # fmt: skip
    save(document, folder, "labels.pdf")


def make_locked(folder: Path) -> None:
    document = pymupdf.open()
    document.new_page().insert_text((72, 100), "locked")
    aes = pymupdf.PDF_ENCRYPT_AES_256
    save(document, folder, "locked.pdf", encryption=aes, user_pw="open", owner_pw="own")
    save(document, folder, "owned.pdf", encryption=aes, owner_pw="own", permissions=0)


def make_bad_page(folder: Path) -> None:
    """Make two pages, the second with more nested graphics states than any reader accepts."""
    good, bad = (
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents %d 0 R/Resources<<%b>>>>" % (number, FONT)
        for number in (5, 6)
    )
    pages = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>>", good, bad]
    texts = [stream(b"BT /F 9 Tf 9 700 Td (good) Tj ET"), stream(b"q " * 1_000_000)]
    (folder / "bad_page.pdf").write_bytes(raw_pdf([*pages, *texts]))


def make_notices(folder: Path) -> None:
    """Make a form and a portfolio whose only page asks for another viewer."""
    document = pymupdf.open()
    document.new_page().insert_text((72, 100), "Please wait... Your PDF viewer may not be able to show this.")
    form = document.get_new_xref()
    document.update_object(form, "<<>>")
    document.update_stream(form, b"<xdp:xdp xmlns:xdp='http://ns.adobe.com/xdp/'/>")
    document.xref_set_key(document.pdf_catalog(), "AcroForm", f"<</Fields [] /XFA {form} 0 R>>")
    save(document, folder, "xfa.pdf")
    document = pymupdf.open()
    document.new_page().insert_text((72, 100), "Open this portfolio with Adobe Reader.")
    document.embfile_add("plain.pdf", (folder / "plain.pdf").read_bytes())
    document.xref_set_key(document.pdf_catalog(), "Collection", "<</View/T>>")
    save(document, folder, "portfolio.pdf")


def make_foreign(folder: Path) -> None:
    """Make files that are no PDFs, named like one."""
    plain = (folder / "plain.pdf").read_bytes()
    picture = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 9, 9))
    contents = {
        "html.pdf": b"<html><body><h1>Not a PDF</h1></body></html>",
        "claims.pdf": b"<html><!-- %PDF-1.7 --><body><h1>Not a PDF</h1></body></html>",
        "svg.pdf": b'<svg xmlns="http://www.w3.org/2000/svg"><text>%PDF-1.4</text></svg>',
        "png.pdf": picture.tobytes("png"),
        "empty.pdf": b"",
        "cut.pdf": plain[:300],
        "zip.pdf": b"PK\x03\x04" + bytes(100),
    }
    for name, data in contents.items():
        (folder / name).write_bytes(data)


def raw_pdf(objects: list[bytes]) -> bytes:
    """Return a PDF of these objects, the first being the catalog; readers repair its missing xref table."""
    body = b"".join(b"%d 0 obj\n%b\nendobj\n" % (number, one) for number, one in enumerate(objects, start=1))
    return b"%PDF-1.7\n" + body + b"trailer\n<</Root 1 0 R>>\n%%EOF\n"


def stream(data: bytes, entries: bytes = b"") -> bytes:
    packed = zlib.compress(data, 9)
    head = b"<</Length %d/Filter/FlateDecode%b>>" % (len(packed), entries)
    return head + b"\nstream\n" + packed + b"\nendstream"


def page_of(content: bytes, resources: bytes, *more: bytes) -> bytes:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<<%b>>>>" % resources
    return raw_pdf(
        [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>", page, content, *more]
    )


FONT = b"/Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>"


def form_bomb() -> bytes:
    """Return ten nested forms that draw 10^10 texts in 3 kB."""
    forms = []
    for depth in range(10):
        inner = b"/X Do " * 10 if depth < 9 else b"BT /F 9 Tf (x) Tj ET"
        below = b"/XObject<</X %d 0 R>>" % (depth + 6) if depth < 9 else FONT
        forms.append(stream(inner, b"/Type/XObject/Subtype/Form/BBox[0 0 600 800]/Resources<<%b>>" % below))
    return page_of(stream(b"/X Do"), b"/XObject<</X 5 0 R>>", *forms)


def glyph_bomb() -> bytes:
    """Return twenty million letters on one page, in 200 kB."""
    line = b"(" + b"a" * 1000 + b") Tj "
    return page_of(stream(b"BT /F 9 Tf 9 700 Td " + line * 20_000 + b"ET"), FONT)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
