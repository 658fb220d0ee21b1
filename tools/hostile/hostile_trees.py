"""Invalid page trees, outlines, page labels and page boxes."""

from __future__ import annotations

from random import Random

from tools.hostile.hostile_raw import A4, FONT, Draft, one_page, page, stream, text, written

HUGE = (2_000_000_000, 2**31 - 1, 2**31, 2**32, 10**15, -1, -(2**31), 0)


def _deep(rng: Random) -> bytes:
    """Make a page tree as deep as other files are long."""
    draft, depth = Draft(), rng.choice([500, 5_000, 50_000])
    below = draft.reserve()
    leaf = draft.add(b"<</Type/Page/Parent %d 0 R%b>>" % (below, page(draft, text("A deep page"))))
    draft.put(below, b"<</Type/Pages/Count 1/Kids[%d 0 R]/Parent %d 0 R>>" % (leaf, below + 3))
    above = below
    for _ in range(depth):
        here = len(draft.objects) + 1
        above = draft.add(b"<</Type/Pages/Count 1/Kids[%d 0 R]/Parent %d 0 R>>" % (above, here + 1))
    return draft.write(draft.add(b"<</Type/Catalog/Pages %d 0 R>>" % above))


def _page_loop(rng: Random) -> bytes:
    draft = Draft()
    tree, inner = draft.reserve(), draft.reserve()
    draft.put(tree, b"<</Type/Pages/Count %d/Kids[%d 0 R]>>" % (rng.randint(1, 9), inner))
    draft.put(inner, b"<</Type/Pages/Count 1/Parent %d 0 R/Kids[%d 0 R]>>" % (tree, tree))
    return draft.write(draft.add(b"<</Type/Catalog/Pages %d 0 R>>" % tree))


def _parent_loop(rng: Random) -> bytes:
    draft = Draft()
    number = len(draft.objects) + 1
    leaf = draft.add(b"<</Type/Page/Parent %d 0 R/Contents 2 0 R>>" % number)
    draft.add(stream(text(f"Its own parent {rng.random()}")))
    tree = draft.add(b"<</Type/Pages/Count 1/Kids[%d 0 R]>>" % leaf)
    return draft.write(draft.add(b"<</Type/Catalog/Pages %d 0 R>>" % tree))


def _outline_loop(rng: Random) -> bytes:
    draft = Draft()
    first, second = draft.reserve(), draft.reserve()
    title = b"/Title(Chapter %d)" % rng.randint(1, 99)
    draft.put(first, b"<<%b/Next %d 0 R/First %d 0 R/Parent %d 0 R>>" % (title, second, first, second))
    draft.put(second, b"<<%b/Next %d 0 R/First %d 0 R/Parent %d 0 R>>" % (title, first, second, first))
    outline = draft.add(b"<</Type/Outlines/First %d 0 R/Last %d 0 R/Count 2>>" % (first, second))
    catalog = b"/Outlines %d 0 R/PageMode/UseOutlines" % outline
    return written(draft, [page(draft, text("Outlines that go round"))], catalog=catalog)


def _label_loop(rng: Random) -> bytes:
    draft = Draft()
    labels = draft.reserve()
    draft.put(labels, b"<</Kids[%d 0 R]/Limits[0 %d]>>" % (labels, rng.randint(1, 99)))
    return written(draft, [page(draft, text("Labels"))], catalog=b"/PageLabels %d 0 R" % labels)


def _odd_labels(rng: Random) -> bytes:
    prefix = rng.choice(
        [b"\0\x01", b"(" + b"A" * 50_000 + b")", b"(\xfe\xff\x20\x2e\x00A)", b"(-- Page 7 --)"]
    )
    labels = b"/PageLabels<</Nums[0<</S/%b/P%b/St %d>>]>>" % (
        rng.choice([b"r", b"A", b"D", b"Zz"]),
        prefix if prefix.startswith(b"(") else b"(" + prefix + b")",
        rng.choice(HUGE),
    )
    return one_page(text("Odd labels"), catalog=labels)


def _count(rng: Random) -> bytes:
    count = rng.choice(HUGE)
    return one_page(text("Miscounted")).replace(b"/Count 1", b"/Count %d" % count)


def _repeated_kids(rng: Random) -> bytes:
    draft, many = Draft(), rng.randint(6_000, 200_000)
    tree = draft.reserve()
    leaf = draft.add(b"<</Type/Page/Parent %d 0 R%b>>" % (tree, page(draft, text("Again"))))
    draft.put(tree, b"<</Type/Pages/Count %d/Kids[%b]>>" % (many, b"%d 0 R " % leaf * many))
    return draft.write(draft.add(b"<</Type/Catalog/Pages %d 0 R>>" % tree))


def _no_pages(rng: Random) -> bytes:
    draft = Draft()
    empty = rng.choice([b"<</Type/Pages/Count 0/Kids[]>>", b"<</Type/Pages>>", b"null", b"[]", b"<<>>"])
    return draft.write(draft.add(b"<</Type/Catalog/Pages %d 0 R>>" % draft.add(empty)))


def _null_kids(rng: Random) -> bytes:
    draft = Draft()
    kids = b" ".join(rng.choice([b"null", b"99 0 R", b"(page)", b"1 0 R"]) for _ in range(9))
    tree = draft.add(b"<</Type/Pages/Count 9/Kids[%b]>>" % kids)
    return draft.write(draft.add(b"<</Type/Catalog/Pages %d 0 R>>" % tree))


def _pages(rng: Random, count: int) -> bytes:
    draft, word = Draft(), f"edition {rng.randint(1, 10**9)}"
    draft.add(stream(text("Page of a long book", word)))
    entries = A4 + b"/Resources<<%b>>/Contents 1 0 R" % FONT
    return written(draft, [entries] * count)


def _many_pages(rng: Random) -> bytes:
    return _pages(rng, 5_000)


def _too_many_pages(rng: Random) -> bytes:
    return _pages(rng, 5_001)


def _box(rng: Random) -> bytes:
    """Make a page without a size, or with one that cannot be printed."""
    far = b"%d" % rng.choice([10**6, 10**9, 2**31, 10**38, 14_400])
    boxes = [
        b"/MediaBox[0 0 %b %b]" % (far, far),
        b"/MediaBox[0 0 0 0]",
        b"/MediaBox[595 842 0 0]",
        b"/MediaBox[-%b -%b %b %b]" % (far, far, far, far),
        b"/MediaBox[0 0 .0001 .0001]",
        b"/MediaBox[0 0 (a) null]",
        b"/MediaBox[nan inf 1e99 1]",
        b"",
        A4 + b"/UserUnit %b" % far,
        A4 + b"/Rotate %d" % rng.choice([45, -90, 450, 2**31, 7]),
        A4 + b"/CropBox[900 900 999 999]",
        A4 + b"/CropBox[100 100 100 100]",
        A4 + b"/CropBox[0 0 %b %b]" % (far, far),
    ]
    white = b" BT 1 1 1 rg /F 9 Tf 9 9 Td (white) Tj ET"
    return one_page(text(f"A box {rng.random()}") + white, entries=rng.choice(boxes))


def _turned(rng: Random) -> bytes:
    """Make a rotated and cropped page, as scanners and printers do; it is read like any other."""
    left, low = rng.randint(0, 50), rng.randint(0, 90)
    entries = A4 + b"/Rotate %d/CropBox[%d %d 560 830]" % (rng.choice([90, 180, 270]), left, low)
    return one_page(text("A turned page", "Escalate within 15 minutes."), entries=entries)


TREES = {
    "deep page tree": _deep,
    "page loop": _page_loop,
    "parent loop": _parent_loop,
    "outline loop": _outline_loop,
    "label loop": _label_loop,
    "odd labels": _odd_labels,
    "miscounted pages": _count,
    "repeated kids": _repeated_kids,
    "no pages": _no_pages,
    "null kids": _null_kids,
    "odd boxes": _box,
    "turned and cropped": _turned,
}
LONG = {"5,000 pages": _many_pages, "5,001 pages": _too_many_pages}
