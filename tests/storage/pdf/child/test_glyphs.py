"""Pages whose characters differ from their ink."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest

from storage.pdf.child.glyphs.line_ink import with_raised_digits
from storage.pdf.child.glyphs.page_ink import MAX_CONTENTS, PageInk
from storage.pdf.child.glyphs.rows import read_page
from storage.pdf.child.mupdf import pymupdf
from storage.pdf.child.page_text import PageText, PageTransform

FLAGS = pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_CLIP
CMAP = (
    b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap"
    b" 1 begincodespacerange <00> <FF> endcodespacerange %b endcmap end end"
)
LETTERS = b"1 beginbfrange <20> <7D> <0020> endbfrange"  # all but ~ map to themselves

Part = tuple[str, float, float]  # text, points above the line, size


def empty_page() -> pymupdf.Page:
    """Return a page that keeps its document open."""
    document = pymupdf.open()
    page = document.new_page()
    page.document = document
    return page


def printed(*lines: str, step: float = 18, size: float = 11) -> pymupdf.Page:
    """Return a page with these lines in Helvetica, the first one 72 points from the top."""
    page = empty_page()
    for number, line in enumerate(lines):
        page.insert_text((72, 72 + number * step), line, fontsize=size)
    return page


def put(page: pymupdf.Page, y: float, *parts: Part, gap: float = 0, left: float = 72) -> pymupdf.Page:
    """Print the parts of a line one after the other."""
    x = left
    for text, up, size in parts:
        page.insert_text((x, y - up), text, fontsize=size)
        x += pymupdf.get_text_length(text, fontsize=size) + gap
    return page


def width_of(parts: Sequence[Part]) -> float:
    """Return the width at which ``put`` prints the parts."""
    return sum(pymupdf.get_text_length(text, fontsize=size) for text, _, size in parts)


def renamed(page: pymupdf.Page, *mappings: bytes) -> pymupdf.Page:
    """Map codes of the page's font to other characters."""
    document = page.document
    cmap = document.get_new_xref()
    document.update_object(cmap, "<<>>")
    document.update_stream(cmap, CMAP % b" ".join(mappings))
    document.xref_set_key(page.get_fonts()[0][0], "ToUnicode", f"{cmap} 0 R")
    return page


def read(page: pymupdf.Page) -> PageText:
    with pymupdf.open(stream=page.document.tobytes()) as saved:
        text_page = saved[0].get_textpage(flags=FLAGS)
        return read_page(text_page, 1, PageTransform(1, 0, 0, 1, 0, 0), PageInk(saved[0]), set())


def lines(page: pymupdf.Page) -> list[str]:
    return [line for line in read(page).text.splitlines() if line]


@pytest.mark.parametrize("code", [b"00AD", b"2011", b"0002", b"FEFF", b"F02D", b"FFFD"])
def test_a_glyph_drawn_as_a_dash_is_one_whatever_its_code(code: bytes) -> None:
    """Numbers keep their hyphens, and hyphenated words are joined, whatever character the font declares."""
    page = printed(
        "Take 5-10 ml at -20 C until 2026-11-30, part SS-25-M, docu-", "mentation of 2019-", "2020.", step=13
    )
    names = (
        b"2 beginbfrange <20> <2C> <0020> <2E> <7E> <002E> endbfrange",
        b"1 beginbfchar <2D> <%b> endbfchar" % code,
    )
    assert lines(renamed(page, *names)) == [
        "Take 5-10 ml at -20 C until 2026-11-30, part SS-25-M, documentation of 2019-2020."
    ]


def test_a_soft_hyphen_without_ink_is_dropped() -> None:
    """A soft hyphen printed as a blank does not split its word."""
    page = printed("Over~time pay")
    hyphen = b"1 beginbfchar <7E> <00AD> endbfchar"
    page.document.xref_set_key(page.get_fonts()[0][0], "Encoding", "<</Differences [126 /space]>>")
    assert lines(renamed(page, LETTERS, hyphen)) == ["Overtime pay"]


@pytest.mark.parametrize(("glyph", "read_as"), [("grave", "a b"), ("hyphen", "a-b")])
def test_an_accent_without_a_character_is_no_dash(glyph: str, read_as: str) -> None:
    """Shows a backtick of a command, slanted and as flat as a dash, whose font declares no character."""
    page = printed("a~b")
    names = b"1 beginbfchar <7E> <FFFD> endbfchar"
    page.document.xref_set_key(page.get_fonts()[0][0], "Encoding", f"<</Differences [126 /{glyph}]>>")
    assert " ".join(read(renamed(page, LETTERS, names)).text.split()) == read_as


def test_an_index_above_a_fraction_bar_stays_an_index() -> None:
    """Shows V₁ in small print, its digit lowered beside its own letter; an exponent there is raised."""
    page = put(empty_page(), 72, ("I = ", 0, 10), ("V", 4, 7), ("1", 3, 5))
    assert lines(page) == ["I = V₁"]
    page = put(empty_page(), 72, ("I = ", 0, 10), ("V", 4, 7), ("2", 6.5, 5))
    assert lines(page) == ["I = V²"]


@pytest.mark.parametrize(
    ("before", "above", "below", "read_as"),
    [
        ("R = ", [("0.503", 4, 7)], [("0.001", -4, 7)], "R = 0.503 0.001 Ohm"),
        ("R = ", [("1200", 7, 10)], [("17", -7, 10)], "R = 1200 17 Ohm"),
        ("R = ", [("200", 4, 7), ("2", 6.5, 5)], [("10", -4, 7), ("-3", -1.5, 5)], "R = 200² 10⁻³ Ohm"),
        ("N + ", [("1", 4, 7)], [("3", -4, 7)], "N + ¹ ₃ Ohm"),
        ("take ", [("17", 4, 7)], [("24", -4, 7)], "take ¹⁷ ₂₄ Ohm"),
        ("about 2", [("1", 4, 7)], [("100", -4, 7)], "about 2¹ ₁₀₀ Ohm"),
    ],
)
def test_parts_of_a_fraction_are_numbers(
    before: str, above: Sequence[Part], below: Sequence[Part], read_as: str
) -> None:
    """Those of ⅓ and of mixed numbers stay raised and lowered: N + 1 and 3 Ohm are other numbers."""
    page = put(empty_page(), 72, (before, 0, 10))
    left = 72 + pymupdf.get_text_length(before, fontsize=10)
    for part in (above, below):
        put(page, 72, *part, left=left)
    right = left + max(width_of(above), width_of(below))
    page.draw_line((left, 69.5), (right, 69.5), width=0.4)
    page.insert_text((right, 72), " Ohm", fontsize=10)
    assert " ".join(read(page).text.split()) == read_as


def test_an_underlined_footnote_mark_is_no_fraction() -> None:
    page = put(empty_page(), 72, ("The fee is due ", 0, 10), ("12", 4, 7), (" monthly", 0, 10))
    left = 72 + pymupdf.get_text_length("The fee is due ", fontsize=10)
    page.draw_line((left, 69), (left + 7, 69), width=0.4)
    page.insert_text((72, 84), "It includes the 10 visits", fontsize=10)
    assert "due ¹² monthly" in read(page).text


def test_hyphenated_words_are_joined_at_any_line_spacing() -> None:
    page = printed("See the docu-", "mentation of SOP-IT-", "04 before.", step=30)
    assert lines(page) == ["See the documentation of SOP-IT-04 before."]


@pytest.mark.parametrize("below", [72, 250])
def test_a_word_hyphenated_in_a_cell_continues_below_it(below: float) -> None:
    """Below the start of its cell, or of the row if wide spaces in a narrow column look like cells."""
    page = empty_page()
    for x, text in ((72, "Lyme disease"), (250, "Tick check in suspected re-")):
        page.insert_text((x, 72), text)
    for x, text in ((below, "gions, insect"), (below + 120, "repellent")):
        page.insert_text((x, 86), text)
    assert lines(page) == ["Lyme disease  Tick check in suspected regions, insect  repellent"]


def test_a_hyphenated_word_does_not_continue_in_another_column() -> None:
    page = empty_page()
    for y, left, right in ((72, "Walk in the", "Check for suspected re-"), (86, "open.", "gions.")):
        page.insert_text((72, y), left)
        page.insert_text((250, y), right)
    assert lines(page) == ["Walk in the  Check for suspected re-", "open.  gions."]


@pytest.mark.parametrize("up", [4, 5])
def test_superscript_and_subscript_digits_are_preserved(up: float) -> None:
    """Footnote marks, exponents and indices are not joined to the number before them."""
    fee = ("The fee is 500", 0, 11), ("2", up, 7), (" EUR after 14", 0, 11), ("1", up, 6), (" days", 0, 11)
    amount = (" for 10", 0, 11), ("-", up, 7), ("5", up, 7.5), (" m", 0, 11), ("3", up, 7)
    page = put(empty_page(), 72, *fee, *amount, (" of H", 0, 11), ("2", -2, 7), ("O.", 0, 11))
    assert lines(page) == ["The fee is 500² EUR after 14¹ days for 10⁻⁵ m³ of H₂O."]


def test_a_digit_after_a_drop_cap_is_no_superscript() -> None:
    page = put(empty_page(), 100, ("T", 0, 36), ("12 items", 18, 11))
    assert "12 items" in read(page).text


def test_superscripts_and_fractions_are_kept_as_printed() -> None:
    """NFKC would turn them into digits: 105 cells, 21 hours."""
    page = empty_page()
    page.insert_htmlbox((60, 60, 500, 200), "2½ hours, 10⁵ cells, 320¹ EUR, 20 m²")
    assert lines(page) == ["2½ hours, 10⁵ cells, 320¹ EUR, 20 m²"]


def test_struck_out_text_is_omitted_and_counted() -> None:
    """Struck by a line, thin rectangle or annotation, even in part of a word; table rules strike nothing."""
    page = printed(
        "at least eight fourteen", "the fine is 4050 EUR", "old sentence", "noted words", "A 10", step=12
    )
    for words, share in (("eight", 1.0), ("4050", 0.5)):
        x0, y0, x1, y1 = page.search_for(words)[0]
        page.draw_line((x0, y0 + 0.52 * (y1 - y0)), (x0 + share * (x1 - x0), y0 + 0.52 * (y1 - y0)))
    x0, y0, x1, y1 = page.search_for("old sentence")[0]
    page.draw_rect((x0, (y0 + y1) / 2 - 0.3, x1, (y0 + y1) / 2 + 0.3), fill=(1, 0, 0), color=None)
    page.add_strikeout_annot(page.search_for("noted")[0])
    page.draw_line((60, 116), (500, 116))  # a line of a chart behind a label
    page.draw_line((60, 75), (200, 75))
    text = read(page)
    assert text.text.split("\n") == ["at least fourteen", "the fine is 50 EUR", "words", "A 10"]
    assert text.struck == 5


@pytest.mark.parametrize("operator", ["S", "s", "f", "F", "f*", "B", "B*", "b", "b*", "W n", "W* n"])
def test_a_rule_strikes_however_it_is_painted(operator: str) -> None:
    """Its operator ends the page's contents; a path that only clips paints nothing."""
    page = printed("at least eight fourteen")
    x0, y0, x1, y1 = page.search_for("eight")[0] * ~page.transformation_matrix
    contents = page.get_contents()[0]
    rule = f"{x0} {(y0 + y1) / 2} {x1 - x0} 0.5 re {operator}"
    page.document.update_stream(contents, page.document.xref_stream(contents).rstrip() + f"\n{rule}".encode())
    assert read(page).struck == (not operator.startswith("W"))


def test_a_rule_in_a_form_strikes() -> None:
    page = printed("at least eight fourteen")
    x0, y0, x1, y1 = page.search_for("eight")[0] * ~page.transformation_matrix
    document, contents = page.document, page.get_contents()[0]
    form = document.get_new_xref()
    document.update_object(form, "<< /Type /XObject /Subtype /Form /BBox [0 0 595 842] >>")
    document.update_stream(form, f"{x0} {(y0 + y1) / 2} {x1 - x0} 0.5 re f".encode())
    resources = int(document.xref_get_key(page.xref, "Resources")[1].split()[0])
    document.xref_set_key(resources, "XObject", f"<< /Rule {form} 0 R >>")
    document.update_stream(contents, document.xref_stream(contents).rstrip() + b"\n/Rule Do")
    assert read(page).struck == 1


def test_a_curve_strikes_no_labels_of_a_chart() -> None:
    """Shows a contour line that rises by less than a point from its label to the next."""
    page = printed("at 24 m/s", "to 26 m/s")
    points = [(60 + 12 * number, 68 + 0.2 * number) for number in range(8)]
    page.draw_polyline(points)
    assert lines(page) == ["at 24 m/s", "to 26 m/s"]
    assert read(page).struck == 0


def test_pages_with_too_many_drawings_are_read_without_them() -> None:
    """A path takes a kilobyte of memory: above the limit, drawings and strikethroughs are ignored."""
    page = printed("at least eight fourteen")
    x0, y0, x1, y1 = page.search_for("eight")[0]
    page.draw_line((x0, (y0 + y1) / 2), (x1, (y0 + y1) / 2))
    contents = page.get_contents()[0]
    page.document.update_stream(contents, page.document.xref_stream(contents) + b"\n%" + MAX_CONTENTS * b" ")
    assert lines(page) == ["at least eight fourteen"]


def test_struck_words_are_found_in_upward_text() -> None:
    page = empty_page()
    page.insert_text((172, 300), "sideways gone kept", fontsize=11, rotate=90)
    x0, y0, x1, y1 = page.search_for("gone")[0]
    page.draw_line(((x0 + x1) / 2, y0), ((x0 + x1) / 2, y1))
    assert lines(page) == ["sideways kept"]


def black_out(page: pymupdf.Page, box: pymupdf.Rect) -> None:
    page.draw_rect(box, fill=(0, 0, 0))


def paint_white(page: pymupdf.Page, box: pymupdf.Rect) -> None:
    page.draw_rect(box, fill=(1, 1, 1), color=None)


def note_black(page: pymupdf.Page, box: pymupdf.Rect) -> None:
    note = page.add_rect_annot(box)
    note.set_colors(fill=(0, 0, 0))
    note.update()


@pytest.mark.parametrize("cover", [black_out, paint_white, note_black])
def test_text_under_a_redaction_bar_is_not_read(cover: Callable[[pymupdf.Page, pymupdf.Rect], None]) -> None:
    page = printed("Born 1980, salary 84,000 EUR", "Visible")
    cover(page, page.search_for("84,000")[0])
    assert lines(page) == ["Born 1980, salary EUR", "Visible"]


def test_text_on_coloured_ground_and_highlighted_text_is_read() -> None:
    page = printed("Highlighted later")
    page.draw_rect((70, 60, 170, 78), fill=(1, 1, 0), fill_opacity=0.4, color=None)
    for y, color in ((100, (0, 0, 0)), (140, (1, 1, 1))):
        page.draw_rect((60, y - 20, 400, y + 10), fill=(0.4, 0.4, 0.5))
        page.insert_text((72, y), "On ground", color=color)
    assert lines(page) == ["Highlighted later", "On ground", "On ground"]


def fill_in(page: pymupdf.Page, fields: Sequence[tuple[object, tuple[float, float, float, float]]]) -> None:
    for number, (value, box) in enumerate(fields):
        field = pymupdf.Widget()
        is_choice = value is True
        field.field_type = pymupdf.PDF_WIDGET_TYPE_CHECKBOX if is_choice else pymupdf.PDF_WIDGET_TYPE_TEXT
        field.field_name, field.field_value, field.rect = f"field {number}", value, pymupdf.Rect(box)
        page.add_widget(field)


def test_form_values_are_read_next_to_their_labels() -> None:
    """After or below their labels; a ticked box precedes its label, as a tick and not as a 4."""
    page = printed("Policy number:", "Telephone:", "First name            Last name", "", "I agree")
    fill_in(page, [
        ("ZK-448", (220, 60, 460, 76)), ("010 555", (220, 78, 460, 94)),
        ("Ada", (72, 112, 160, 128)), ("Lovelace", (180, 112, 260, 128)), (True, (56, 134, 68, 146)),
    ])  # fmt: skip
    page.add_freetext_annot((120, 132, 300, 150), "typed here")
    policy, telephone, labels, names, agreed = lines(page)
    assert (policy, telephone) == ("Policy number:  ZK-448", "Telephone:  010 555")
    assert (labels.split(), names) == ("First name Last name".split(), "Ada  Lovelace")
    assert agreed in ("✓  I agree  typed here", "✔  I agree  typed here")


@pytest.mark.parametrize(
    ("parts", "read_as", "meant"),
    [
        ((("after 14", 0, 22), ("12", 8, 13), (" days.", 0, 22)), "after 1412 days.", "after 14¹² days."),
        ((("m", 0, 22), ("2", 8, 13), (", 2024", 0, 22)), "m2, 2024", "m², 2024"),
        (
            (("1", 8, 13), (" Counted in Q4 of 24.", 0, 22)),
            "1 Counted in Q4 of 24.",
            "¹ Counted in Q4 of 24.",
        ),
        ((("Price", 0, 30), (" net 30", 9, 18)), "Price net 30", "Price net 30"),
    ],
)
def test_digits_above_a_scanned_line_become_superscripts(
    parts: Sequence[tuple[str, float, float]], read_as: str, meant: str
) -> None:
    """OCR models read them as digits of the preceding number; smaller words are no superscripts."""
    page = put(empty_page(), 100, *parts)
    words = page.get_text("words")
    right = words[-1][2] + 10
    picture = page.get_pixmap(dpi=150, clip=(60, 65, right, 115), colorspace=pymupdf.csGRAY)
    ink = np.frombuffer(picture.samples, np.uint8).reshape(picture.height, picture.stride) < 128
    gaps = [(before[2] + after[0]) / 2 for before, after in pairwise(words)]
    sides = [(side - 60) / (right - 60) for side in (60, *gaps, right)]
    assert " ".join(with_raised_digits(read_as.split(), list(pairwise(sides)), ink)) == meant


def test_a_form_value_across_a_line_is_not_struck_out() -> None:
    page = printed("Name:")
    page.add_freetext_annot((115, 60, 210, 80), "Ada Lovelace")
    (value,) = page.search_for("Ada Lovelace")
    page.draw_line((value.x0, value.y0 + 0.55 * value.height), (value.x1, value.y0 + 0.55 * value.height))
    assert lines(page) == ["Name:  Ada Lovelace"]


def test_words_split_around_ligatures_are_joined() -> None:
    pieces = "The con fi guration fi le of the sta ff and the o ffi ce is certi fi ed".split()
    page = put(empty_page(), 72, *((piece, 0, 11) for piece in pieces), gap=3)
    assert lines(page) == ["The configuration file of the staff and the office is certified"]


def test_letter_spaced_words_are_joined_and_choices_are_not() -> None:
    page = empty_page()
    for number, text in enumerate(("DELIVERY TERMS", "in nine days.", "ABCDEF", "MTWTFSS")):
        put(page, 80 + 40 * number, *((letter, 0, 11) for letter in text), gap=5)
    page.insert_text((72, 300), "P A Y M E N T   T E R M S", fontsize=12)
    assert lines(page) == ["DELIVERY TERMS", "in nine days.", "A B C D E F", "M T W T F S S", "PAYMENT TERMS"]


def test_lam_precedes_alef() -> None:
    """The letters of an Arabic ligature keep their order when text is reversed from right to left."""
    page = printed("waL")  # drawn from left to right; L is the ligature
    names = b"3 beginbfchar <77> <0648> <61> <0627> <4C> <06440623> endbfchar"
    assert lines(renamed(page, names)) == ["\u0644\u0623\u0627\u0648"]


def test_vertical_japanese_is_read_by_columns() -> None:
    page = empty_page()
    for column, text in enumerate(("本規則は従業員に", "適用する。休暇は")):
        for number, char in enumerate(text):
            page.insert_text((400 - 24 * column, 100 + 14 * number), char, fontsize=12, fontname="japan")
    assert lines(page) == ["本規則は従業員に", "適用する。休暇は"]


def test_single_character_columns_of_a_table_stay_rows() -> None:
    page = empty_page()
    for row in range(5):
        for column, sign in enumerate("是否有"):
            page.insert_text((72 + 90 * column, 100 + 20 * row), sign, fontsize=12, fontname="china-s")
    assert lines(page) == ["是  否  有"] * 5


@pytest.mark.parametrize("code", ["−", "℃", "\u2126", "⇒", "\uf0b7", "क", "ệ", "한", "ジ"])
def test_a_printed_gap_is_a_space_after_any_character(code: str) -> None:
    """MuPDF detects none after symbols and many scripts, so that a list's dash became a minus sign."""
    page = empty_page()
    put(page, 72, ("~", 0, 11), ("12 apart", 0, 11), gap=3)
    put(page, 96, ("~12 close", 0, 11))
    char = b"1 beginbfchar <7E> <%04X> endbfchar" % ord(code)
    sign = {"℃": "°C", "\u2126": "Ω", "\uf0b7": "•"}.get(code, code)
    assert lines(renamed(page, LETTERS, char)) == [f"{sign} 12 apart", f"{sign}12 close"]


@pytest.mark.parametrize(("gap", "meant"), [(3.5, "CHAPTER 4"), (0.5, "CHAPTER4")])
def test_a_gap_is_measured_by_the_smaller_font(gap: float, meant: str) -> None:
    page = put(empty_page(), 72, ("CHAPTER", 0, 14), ("4", 0, 25), gap=gap)
    assert lines(page) == [meant]


def test_a_point_without_width_splits_no_number() -> None:
    """MuPDF takes a point for a gap if the font gives it no width."""
    page = printed("Sum")
    for y, gap in ((90, 0.0), (108, 5.0)):
        put(page, y, ("11,062.", 0, 11), ("6 tons", 0, 11), gap=gap)
    lengths = {char: pymupdf.get_text_length(char, fontsize=1000) for char in map(chr, range(32, 127))}
    widths = " ".join(str(round(length)) for length in ({**lengths, ".": 0}).values())
    font = page.get_fonts()[0][0]
    for key, value in (("FirstChar", "32"), ("LastChar", "126"), ("Widths", f"[{widths}]")):
        page.document.xref_set_key(font, key, value)
    assert lines(page) == ["Sum", "11,062.6 tons", "11,062. 6 tons"]


@pytest.mark.parametrize(("text", "meant"), [("a~ = 0", "a ≠ 0"), ("a =~ 0", "a ≠ 0"), ("x ~< 5", "x ≮ 5")])
def test_a_slash_through_a_sign_negates_it(text: str, meant: str) -> None:
    slash = b"1 beginbfchar <7E> <0338> endbfchar"
    assert lines(renamed(printed(text), LETTERS, slash)) == [meant]


@pytest.mark.parametrize("order", ["=/", "/="])
def test_an_equals_sign_with_an_overprinted_slash_is_unequal(order: str) -> None:
    page = printed("x /= 5")
    for char in order:
        page.insert_text((74 if char == "/" else 72, 90), char, fontsize=11)
    page.insert_text((82, 90), "0", fontsize=11)
    assert lines(page) == ["x /= 5", "≠ 0"]


def test_an_accent_combines_with_the_letter_below_it() -> None:
    """TeX writes it before its letter and prints it over it; elsewhere it is a minute or a foot sign."""
    page = printed("Depth 5´, Algal¯DNA¯v03")
    for number, (accent, letter) in enumerate(("¨o", "´e", "`a")):
        y, left = 100 + 20 * number, 72 + pymupdf.get_text_length("Sch", fontsize=11)
        for x, text in ((72, "Sch"), (left, accent), (left, letter + "gl")):
            page.insert_text((x, y), text, fontsize=11)
    assert lines(page) == ["Depth 5´, Algal¯DNA¯v03", "Schögl", "Schégl", "Schàgl"]


def test_small_pale_digits_under_a_translucent_bar_are_read() -> None:
    """A low-resolution rendering does not show them; a translucent bar redacts nothing."""
    page = empty_page()
    x = 72.0
    for text, down, size, grey in (("C", 0, 7, 0), ("3", 1, 3.5, 0.8), ("H", 0, 7, 0), ("8", 1, 3.5, 0.8)):
        page.insert_text((x, 72 + down), text, fontsize=size, color=(grey, grey, grey))
        x += pymupdf.get_text_length(text, fontsize=size)
    page.draw_rect((70, 60, 200, 80), fill=(1, 1, 0), fill_opacity=0.3, color=None)
    assert lines(page) == ["C₃H₈"]
