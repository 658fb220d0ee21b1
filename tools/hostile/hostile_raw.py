"""PDF writer, object by object and without a library, so that anything can be wrong on purpose."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

FONT = b"/Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>"
A4 = b"/MediaBox[0 0 595 842]"


class Draft:
    """A PDF in the making; objects are numbered from 1 in the order of ``add``."""

    def __init__(self) -> None:
        self.objects: list[bytes] = []

    def add(self, body: bytes) -> int:
        """Add an object and return its number."""
        self.objects.append(body)
        return len(self.objects)

    def reserve(self) -> int:
        """Return a number for an object that comes later."""
        return self.add(b"null")

    def put(self, number: int, body: bytes) -> None:
        """Set the object of a reserved number."""
        self.objects[number - 1] = body

    def write(self, root: int, trailer: bytes = b"", *, whole: bool = True) -> bytes:
        """Return the file; without table and end if it is not ``whole``."""
        parts, places, position = [b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"], [], 15
        for number, body in enumerate(self.objects, start=1):
            piece = b"%d 0 obj\n%b\nendobj\n" % (number, body)
            places.append(position)
            position += len(piece)
            parts.append(piece)
        if whole:
            rows = b"".join(b"%010d 00000 n \n" % place for place in places)
            parts.append(b"xref\n0 %d\n0000000000 65535 f \n%b" % (len(places) + 1, rows))
        parts.append(b"trailer\n<</Size %d/Root %d 0 R%b>>\n" % (len(places) + 1, root, trailer))
        if whole:
            parts.append(b"startxref\n%d\n" % position)
        return b"".join([*parts, b"%%EOF\n"])


def stream(data: bytes, entries: bytes = b"", *, packed: bool = True) -> bytes:
    """Return a stream object, deflated by default."""
    body = zlib.compress(data, 6) if packed else data
    filters = b"/Filter/FlateDecode" if packed else b""
    return b"<</Length %d%b%b>>\nstream\n%b\nendstream" % (len(body), filters, entries, body)


def written(draft: Draft, pages: Iterable[bytes], *, catalog: bytes = b"", trailer: bytes = b"") -> bytes:
    """Return the file with these pages, given by the entries of their dictionaries."""
    tree = draft.reserve()
    kids = [draft.add(b"<</Type/Page/Parent %d 0 R%b>>" % (tree, page)) for page in pages]
    listed = b" ".join(b"%d 0 R" % kid for kid in kids)
    draft.put(tree, b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(kids), listed))
    return draft.write(draft.add(b"<</Type/Catalog/Pages %d 0 R%b>>" % (tree, catalog)), trailer)


def page(draft: Draft, content: bytes, *, resources: bytes = FONT, entries: bytes = A4) -> bytes:
    """Return the entries of a page with this content."""
    return b"%b/Resources<<%b>>/Contents %d 0 R" % (entries, resources, draft.add(stream(content)))


def text(*lines: str, size: float = 11, before: bytes = b"") -> bytes:
    """Return the content of a page with these lines."""
    shown = b" ".join(b"(%b) Tj T*" % escaped(line) for line in lines)
    return b"%b BT /F %g Tf %g TL 60 780 Td %b ET" % (before, size, size * 1.3, shown)


def escaped(line: str) -> bytes:
    """Return a line escaped for a literal string."""
    data = line.encode("latin-1", "replace")
    for char in (b"\\", b"(", b")"):
        data = data.replace(char, b"\\" + char)
    return data


def one_page(content: bytes, *, resources: bytes = FONT, entries: bytes = A4, catalog: bytes = b"") -> bytes:
    """Return a file of one page."""
    draft = Draft()
    only = page(draft, content, resources=resources, entries=entries)
    return written(draft, [only], catalog=catalog)
