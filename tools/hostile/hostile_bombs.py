"""Resource bombs: small files that take much time, memory or stack depth."""

from __future__ import annotations

import zlib
from random import Random

from tools.hostile.hostile_raw import A4, FONT, Draft, one_page, page, stream, text, written

LINE = b"(Backups run daily at two in the morning.) Tj T* "


def _forms(rng: Random) -> bytes:
    """Make forms that draw forms (billion laughs)."""
    draft, fan = Draft(), rng.randint(8, 12)
    inner = draft.add(
        stream(b"BT /F 9 Tf (ha) Tj ET", b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<<%b>>" % FONT)
    )
    for _ in range(9):
        below = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X %d 0 R>>>>" % inner
        inner = draft.add(stream(b"/X Do " * fan, below))
    return written(draft, [page(draft, b"/X Do", resources=b"/XObject<</X %d 0 R>>" % inner)])


def _form_in_itself(rng: Random) -> bytes:
    draft = Draft()
    itself = draft.reserve()
    head = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X %d 0 R>>>>" % itself
    draft.put(itself, stream(b"/X Do " * rng.randint(1, 4), head))
    return written(draft, [page(draft, b"/X Do", resources=b"/XObject<</X %d 0 R>>" % itself)])


def _glyphs(rng: Random) -> bytes:
    row = b"(" + b"a" * rng.randint(900, 1100) + b") Tj "
    return one_page(b"BT /F 9 Tf 9 700 Td " + row * 25_000 + b"ET")


def _words(rng: Random) -> bytes:
    row = b"(" + b"ab " * rng.randint(300, 400) + b") Tj T* "
    return one_page(b"BT /F 9 Tf 9 TL 9 700 Td " + row * 6_000 + b"ET")


def _paths(rng: Random) -> bytes:
    return one_page(text("Many paths") + b" 0 0 m 9 9 l S" * rng.randint(200_000, 300_000))


def _spaces(head: bytes, megabytes: int) -> bytes:
    """Return ``head`` and megabytes of spaces, deflated; one megabyte is compressed once and repeated."""
    packer = zlib.compressobj(9)
    start = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(b" " * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + again * megabytes + packer.flush()


def _packed(data: bytes, times: int) -> bytes:
    """Return a file whose content claims to be deflated ``times`` times."""
    draft = Draft()
    head = b"<</Length %d/Filter[%b]>>" % (len(data), b"/FlateDecode" * times)
    content = draft.add(head + b"\nstream\n" + data + b"\nendstream")
    return written(draft, [A4 + b"/Resources<<%b>>/Contents %d 0 R" % (FONT, content)])


def _deflate(rng: Random) -> bytes:
    """Make hundreds of megabytes of spaces in hundreds of kilobytes."""
    return _packed(_spaces(text("Deflated"), rng.randint(300, 400)), 1)


def _deflate_twice(rng: Random) -> bytes:
    """Make ten gigabytes in tens of kilobytes."""
    return _packed(zlib.compress(_spaces(text("Deflated twice"), rng.randint(9_000, 11_000)), 9), 2)


def _filters(rng: Random) -> bytes:
    return _packed(zlib.compress(text("Filters")), rng.randint(500, 2000))


def _objects(rng: Random) -> bytes:
    """Make hundreds of thousands of unused objects."""
    draft = Draft()
    draft.objects += [b"[1]"] * rng.randint(200_000, 300_000)
    return written(draft, [page(draft, text("Many objects"))])


def _claimed_objects(rng: Random) -> bytes:
    """Make a cross-reference table that claims more objects than there are numbers."""
    claimed = str(rng.choice([2**31 - 1, 2**31, 10**12, 8_388_607, 8_388_609])).encode()
    return one_page(text("Claims")).replace(b"/Size ", b"/Size " + claimed + b"%\n ")


def _object_stream(rng: Random) -> bytes:
    """Make a million objects in one compressed object stream."""
    many = rng.randint(900_000, 1_100_000)
    head = b" ".join(b"%d %d" % (1000 + index, 2 * index) for index in range(many)) + b" "
    draft = Draft()
    draft.add(stream(head + b"1 " * many, b"/Type/ObjStm/N %d/First %d" % (many, len(head))))
    return written(draft, [page(draft, text("Object streams"))])


def _states(rng: Random) -> bytes:
    return one_page(text("Many states") + b" q" * rng.randint(900_000, 1_100_000))


def _arrays_in_content(rng: Random) -> bytes:
    return one_page(text("Arrays") + b"[" * rng.randint(100_000, 300_000))


def _arrays_in_catalog(rng: Random) -> bytes:
    return one_page(text("Arrays"), catalog=b"/Deep " + b"[" * rng.randint(90_000, 110_000))


def _dictionaries(rng: Random) -> bytes:
    many = rng.randint(1_000, 100_000)
    return one_page(text("Dictionaries"), catalog=b"/Deep " + b"<</A" * many + b" 1" + b">>" * many)


def _image(rng: Random) -> bytes:
    draft, side = Draft(), rng.choice([40_000, 60_000, 30_000])
    head = b"/Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceGray/BitsPerComponent 8" % (
        side,
        side + rng.randint(0, 99),
    )
    image = draft.add(stream(bytes(1_000_000), head))
    resources = FONT + b"/XObject<</I %d 0 R>>" % image
    content = text("An image") + b" q 500 0 0 500 9 9 cm /I Do Q BT 1 1 1 rg /F 9 Tf 9 9 Td (white) Tj ET"
    return written(draft, [page(draft, content, resources=resources)])


def _images(rng: Random) -> bytes:
    content = text("Images") + b" BI /W 100 /H 100 /BPC 8 /CS /G ID " + bytes(10_000) + b" EI"
    return one_page(content + b" q 1 0 0 1 1 1 cm /I Do Q" * rng.randint(90_000, 110_000))


def _pattern(rng: Random) -> bytes:
    draft = Draft()
    itself = draft.reserve()
    head = (
        b"/Type/Pattern/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 9 9]/XStep .001/YStep .001"
        b"/Resources<</Pattern<</P %d 0 R>>>>" % itself
    )
    draft.put(itself, stream(b"/Pattern cs /P scn 0 0 9 9 re f " * rng.randint(1, 3), head))
    content = b"/Pattern cs /P scn 0 0 500 500 re f " + text("Patterns")
    content += b" BT 1 1 1 rg /F 9 Tf 9 9 Td (white) Tj ET"
    return written(draft, [page(draft, content, resources=FONT + b"/Pattern<</P %d 0 R>>" % itself)])


def _glyph_in_itself(rng: Random) -> bytes:
    """Make a Type 3 font whose glyphs use the font itself."""
    draft = Draft()
    font = draft.reserve()
    proc = draft.add(stream(b"500 0 d0 BT /F 1 Tf (%b) Tj ET" % (b"a" * rng.randint(1, 9))))
    draft.put(
        font,
        b"<</Type/Font/Subtype/Type3/FontBBox[0 0 1000 1000]/FontMatrix[.001 0 0 .001 0 0]/FirstChar 97"
        b"/LastChar 97/Widths[500]/CharProcs<</a %d 0 R>>/Encoding<</Differences[97/a]>>"
        b"/Resources<</Font<</F %d 0 R>>>>>>" % (proc, font),
    )
    content = b"BT /F 9 Tf 9 700 Td (aaaa) Tj ET"
    return written(draft, [page(draft, content, resources=b"/Font<</F %d 0 R>>" % font)])


def _unicode(rng: Random) -> bytes:
    """Make a font whose characters each map to hundreds."""
    draft, many = Draft(), rng.randint(200, 250)
    spelled = b"0061" * many
    rows = b"\n".join(b"<%02x> <%b>" % (code, spelled) for code in range(97, 123))
    cmap = draft.add(
        stream(
            b"/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <ff> "
            b"endcodespacerange 26 beginbfchar\n" + rows + b"\nendbfchar endcmap"
        )
    )
    font = b"/Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode %d 0 R>>>>" % cmap
    row = b"(abcdefghijklmnopqrstuvwxyz) Tj T* " * 2000
    return written(draft, [page(draft, b"BT /F 9 Tf 9 TL 9 700 Td " + row + b"ET", resources=font)])


def _shared_flood(rng: Random) -> bytes:
    """Make thousands of pages that share content of twenty thousand words."""
    draft = Draft()
    row = b"(" + b"ab " * 40 + b") Tj T* "
    content = draft.add(stream(b"BT /F 1 Tf 1.2 TL 9 800 Td " + row * 500 + b"ET"))
    entries = A4 + b"/Resources<<%b>>/Contents %d 0 R" % (FONT, content)
    return written(draft, [entries] * rng.randint(3_000, 5_000))


# Each takes a child all the time or memory that it may use, three times.
HEAVY = {
    "forms in forms": _forms,
    "25 million letters": _glyphs,
    "2 million words": _words,
    "deflate bomb": _deflate,
    "double deflate bomb": _deflate_twice,
    "flood on shared pages": _shared_flood,
}

LIGHT = {
    "form in itself": _form_in_itself,
    "paths": _paths,
    "filter chain": _filters,
    "half a million objects": _objects,
    "claimed objects": _claimed_objects,
    "object stream": _object_stream,
    "a million q": _states,
    "arrays in content": _arrays_in_content,
    "arrays in catalog": _arrays_in_catalog,
    "dictionaries": _dictionaries,
    "huge image": _image,
    "many images": _images,
    "pattern in itself": _pattern,
    "glyph in itself": _glyph_in_itself,
    "letters that stand for hundreds": _unicode,
}
