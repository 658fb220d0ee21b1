"""Small PDFs without a library: a line of text per line, in Helvetica."""

from __future__ import annotations

FONTS = ("/Helvetica", "/Helvetica-Bold")

FAQ = {
    "When do nightly backups run?": "Nightly backups run at 2:00 AM, also on holidays.",
    "Who checks the backup report?": "The IT department checks the backup report every morning.",
    "How long are backup tapes kept?": "Backup tapes are kept for ninety days in the vault.",
}


def pdf(*pages: str) -> bytes:
    """Return a PDF with these pages; the bytes are deterministic."""
    return _of_contents([_content(page) for page in pages])


def table_pdf(title: str, rows: list[list[str]]) -> bytes:
    """Return a page with a title and a ruled table with a bold first row."""
    drawn = [f"BT /F2 16 Tf 60 780 Td ({title}) Tj ET"]
    for number, row in enumerate(rows):
        top = 750 - 20 * number
        for column, text in enumerate(row):
            left, font = 60 + 150 * column, "/F1" if number else "/F2"
            drawn.append(
                f"{left} {top - 20} 150 20 re S BT {font} 11 Tf {left + 5} {top - 14} Td ({text}) Tj ET"
            )
    return _of_contents([" ".join(drawn)])


def faq_pdf() -> bytes:
    """Return a page of frequent questions as headings, each with its answer below."""
    drawn = ["BT /F2 20 Tf 60 780 Td (Backup questions) Tj ET"]
    for number, (heading, answer) in enumerate(FAQ.items()):
        top = 740 - 60 * number
        drawn.append(f"BT /F2 14 Tf 60 {top} Td ({heading}) Tj ET")
        drawn.append(f"BT /F1 11 Tf 60 {top - 22} Td ({answer}) Tj ET")
    return _of_contents([" ".join(drawn)])


def _of_contents(contents: list[str]) -> bytes:
    kids = " ".join(f"{3 + 2 * number} 0 R" for number in range(len(contents)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(contents)} /Kids [{kids}] >>",
    ]
    plain, bold = (f"<< /Type /Font /Subtype /Type1 /BaseFont {name} >>" for name in FONTS)
    font = f"<< /Font << /F1 {plain} /F2 {bold} >> >>"
    for number, content in enumerate(contents):
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources {font} "
            f"/Contents {4 + 2 * number} 0 R >>",
            f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        ]
    return _file(objects)


def locked_pdf(*pages: str) -> bytes:
    """Return a PDF locked with an unknown password."""
    lock = (
        f"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <{'41' * 32}> /U <{'42' * 32}> >> /ID [<43> <43>]"
    )
    return pdf(*pages).replace(b"/Root 1 0 R", f"/Root 1 0 R {lock}".encode())


def _content(page: str) -> str:
    shown = [line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") for line in page.split("\n")]
    return "BT /F1 11 Tf 14 TL 60 780 Td " + " ".join(f"({line}) Tj T*" for line in shown) + " ET"


def _file(objects: list[str]) -> bytes:
    data = b"%PDF-1.4\n"
    places = []
    for number, text in enumerate(objects, start=1):
        places.append(len(data))
        data += f"{number} 0 obj\n{text}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    trailer = f"trailer\n<< /Size {len(places) + 1} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    return data + f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n{table}{trailer}".encode("latin-1")
