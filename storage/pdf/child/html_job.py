"""HTML job: extracts the main text of a web page.

Menus, banners and footers are removed (trafilatura), and so is text that a browser would not show, which may
be written for machines only.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from encodings.aliases import aliases
from html import escape, unescape
from itertools import islice
from typing import Any

from charset_normalizer import from_bytes
from lxml import etree, html
from trafilatura import bare_extraction

MAX_BLOCKS = 20_000
MAX_LISTED = 10_000

_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
# CSS declarations that hide an element.
_HIDING = re.compile(
    r"(?<![\w-])(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)"
    r"|(?:left|top|text-indent)\s*:\s*-\d{4,}|clip(?:-path)?\s*:\s*(?:rect\(0|inset\((?:50|100)%)"
    r"|(?:opacity\s*:\s*0(?:\.0+)?|font-size\s*:\s*0(?:\.0+)?(?:px|pt|em|rem|%)?"
    r"|(?:max-)?(?:height|width)\s*:\s*[01](?:px)?)\s*(?:;|!|$))",
    re.IGNORECASE,
)
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_SIMPLE = re.compile(r"[.#][\w-]+")
# Invisible characters, and those that change the writing direction.
_UNSEEN = re.compile(
    "[\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
# In the id or a class of consent banners, some of which trafilatura takes for the text of a short page.
_BANNER = re.compile(r"cookie|consent|gdpr", re.IGNORECASE)
_REFERENCE = re.compile(r"&#(?:\d{1,7}|[xX][0-9a-fA-F]{1,6});?")
# Characters invalid in XML, for which trafilatura would reject the whole page; PostgreSQL rejects NUL, too.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_SILENT = (
    "script",
    "style",
    "template",
    "noscript",
    "object",
    "embed",
    "iframe",
    "svg",
    "canvas",
    "datalist",
)
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATES = (
    "//meta[@property='article:modified_time' or @name='last-modified' or @itemprop='dateModified']/@content",
    "//*[@itemprop='dateModified']/@datetime",
    "//meta[@property='article:published_time' or @name='date' or @name='dcterms.modified']/@content",
    "//main//time/@datetime|//article//time/@datetime",
)


def warm_up() -> None:
    """Process a page with all features once, so that no child needs to open a file."""
    body = "<h2 id=a>Heading</h2><p>Some text of a page.</p><table><tr><th>a</th><td>b</td></tr></table>" * 3
    for page in (f"<html><head><title>Title</title></head><body><main>{body}</main></body></html>", "<p>a"):
        list(_read_html(page))
    list(_listed(b"<urlset><url><loc>a</loc></url></urlset>"))
    for name in set(aliases.values()):
        with suppress(LookupError):  # a codec of another operating system
            codecs.lookup(name)
    from_bytes("Größe und Straße".encode("latin-1")).best()


def perform(job: dict[str, Any], source: int, out: int) -> None:
    """Read the page open at ``source``: a line of JSON with media type and charset, then its data.

    Writes one line of JSON to ``out``: the page's title, its date ('' if it states none), and its blocks as
    [kind, level, anchor, text]; the text of a table row has its cells separated by bars. For a sitemap, whose
    type is XML, it writes the ``urls``.
    """
    with os.fdopen(source, "rb") as file, os.fdopen(out, "wb") as sink:
        head, _, data = file.read().partition(b"\n")
        page = json.loads(head)
        if page["media_type"].endswith("/xml"):
            sink.write(json.dumps({"urls": list(islice(_listed(data), MAX_LISTED))}).encode() + b"\n")
            return
        text = _decoded(data, page["charset"])
        about, *blocks = _read_text(text) if page["media_type"] == "text/plain" else _read_html(text)
        sink.write(json.dumps({**about, "blocks": blocks[:MAX_BLOCKS]}).encode() + b"\n")


def _listed(data: bytes) -> Iterator[str]:
    """Yield the addresses in a sitemap; none if it is damaged or a sitemap index."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=True)
    root = etree.fromstring(data, parser)
    for element in () if root is None else root.iterfind(".//{*}url/{*}loc"):
        yield (element.text or "").strip()


def _decoded(data: bytes, charset: str | None) -> str:
    """Decode a page, as UTF-8 if possible: servers declare ISO-8859-1 for everything."""
    said = _CHARSET.search(data[:4096])
    marks = ["utf-16"] if data[:2] in (b"\xff\xfe", b"\xfe\xff") else []
    for name in (*marks, "utf-8", said and said[1].decode("ascii"), charset):
        try:
            if name:
                return data.decode(name).removeprefix("\ufeff")
        except (LookupError, UnicodeDecodeError):
            pass
    return str((from_bytes(data[:100_000]).best() and from_bytes(data).best()) or data.decode("latin-1"))


def _read_text(text: str) -> Iterator[Any]:
    yield {"title": "", "day": ""}
    for paragraph in re.split(r"\n\s*\n", _CONTROL.sub(" ", text.replace("\r\n", "\n"))):
        if visible := _visible(paragraph):
            yield ["text", 0, "", visible]


def _read_html(text: str) -> Iterator[Any]:
    """Yield the page's metadata, then its blocks."""
    text = _CONTROL.sub(" ", _REFERENCE.sub(lambda found: escape(unescape(found[0])), text))
    parser = html.HTMLParser(remove_comments=True, remove_pis=True, no_network=True)
    tree = html.document_fromstring(text or "<p></p>", parser=parser, ensure_head_body=True)
    title = _visible(" ".join(tree.xpath("//head/title/text()")))
    name = next(filter(None, (_visible(one.text_content()) for one in tree.iter("h1"))), "")
    day = next((dated for path in _DATES for value in tree.xpath(path) if (dated := _day(value))), "")
    anchors = _anchors(tree)
    _remove_unseen(tree)
    _unfold_layout(tree)
    found = bare_extraction(
        tree, include_comments=False, include_tables=True, favor_recall=True, with_metadata=False
    )
    body = getattr(found, "body", None)
    yield {"title": name or title, "day": day}
    if body is not None:
        yield from _blocks(body, anchors)


def _day(value: str) -> str:
    """Return the leading date of a value; '' if it is invalid, as the 0000-00-00 of some servers."""
    found = _DAY.match(value)
    with suppress(ValueError):
        return date.fromisoformat(found[0]).isoformat() if found else ""
    return ""


def _unfold_layout(tree: html.HtmlElement) -> None:
    """Turn layout tables, those with headings or nested tables, into divs."""
    for table in list(tree.iter("table")):
        if not _has_heading(table) and next(table.iterdescendants("table"), None) is None:
            continue
        for element in table.xpath(
            "descendant-or-self::*[self::table or self::tbody or self::tr or self::td]"
        ):
            if next(element.iterancestors("table"), table) is table:
                element.tag = "div"
                element.attrib.clear()


def _remove_unseen(tree: html.HtmlElement) -> None:
    """Remove elements that are hidden from a reader, and those without text."""
    hiding = _hiding_selectors(tree)
    for element in list(tree.iter()):
        if element.getparent() is None or not isinstance(element.tag, str):
            continue
        classes = {f".{name}" for name in (element.get("class") or "").split()}
        is_unseen = (
            element.tag in _SILENT
            or element.get("hidden") is not None
            or element.get("aria-hidden") == "true"
            or (element.tag == "input" and element.get("type") == "hidden")
            or _HIDING.search(element.get("style") or "")
            or element.get("role") in ("dialog", "alertdialog")
            or _BANNER.search(f"{element.get('id')} {element.get('class')}")
            or hiding & (classes | {f"#{element.get('id')}"})
            or (_has_colour_of_its_ground(element.get("style") or "") and not _has_heading(element))
        )
        if is_unseen:
            element.drop_tree()


def _hiding_selectors(tree: html.HtmlElement) -> set[str]:
    """Return the classes and ids that the page's own style sheet hides."""
    sheet = " ".join(tree.xpath("//style/text()"))
    rules = re.sub(r"@media\s+print[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", sheet)
    return {
        selector.strip()
        for selectors, style in _RULE.findall(rules)
        if _HIDING.search(style)
        for selector in selectors.split(",")
        if _SIMPLE.fullmatch(selector.strip())
    }


def _has_heading(element: html.HtmlElement) -> bool:
    """True if it is or contains a heading, which often has a background image."""
    return next(element.iter(*_HEADINGS), None) is not None


def _has_colour_of_its_ground(style: str) -> bool:
    """True if the text has the colour of its background, or is white on the default white."""
    said = {
        name.strip().lower(): value.strip().lower()
        for name, _, value in (one.partition(":") for one in style.split(";"))
    }
    ground = said.get("background-color") or said.get("background") or "white"
    white = {"#fff": "white", "#ffffff": "white", "rgb(255,255,255)": "white"}
    colour = said.get("color", "").replace(" ", "")
    return bool(colour) and white.get(colour, colour) == white.get(ground.replace(" ", ""), ground)


def _anchors(tree: html.HtmlElement) -> dict[str, deque[str]]:
    """Return heading -> the ids that a link can reach it by, in page order."""
    found: dict[str, deque[str]] = defaultdict(deque)
    for element in tree.iter(*_HEADINGS):
        own = [element.get("id"), *element.xpath(".//@id"), *element.xpath(".//a/@name")]
        for around in element.iterancestors("section", "article", "div"):
            if next(around.iter(*_HEADINGS), None) is not element:
                break
            own.append(around.get("id"))
        if anchor := next(filter(None, own), None):
            found[_visible(element.text_content())].append(anchor)
    return found


def _blocks(body: etree._Element, anchors: dict[str, deque[str]]) -> Iterator[list[Any]]:
    for element in body:
        if element.tag == "head":
            yield from _heading(element, anchors)
        elif element.tag == "list":
            yield from _items(element)
        elif element.tag == "table":
            yield from _rows(element)
        elif element.tag in ("quote", "div") and len(element):
            yield from _text(element.text)
            yield from _blocks(element, anchors)
        else:
            yield from _text(" ".join(element.itertext()))
        yield from _text(element.tail)


def _text(text: str | None) -> Iterator[list[Any]]:
    if visible := _visible(text or ""):
        yield ["text", 0, "", visible]


def _heading(element: etree._Element, anchors: dict[str, deque[str]]) -> Iterator[list[Any]]:
    text = _visible(" ".join(element.itertext()))
    rend = element.get("rend") or "h3"
    level = int(rend[1]) if rend[1:].isdigit() else 3
    if text:
        yield ["heading", level, anchors[text].popleft() if anchors.get(text) else "", text]


def _items(listed: etree._Element, depth: int = 0) -> Iterator[list[Any]]:
    """Yield list items with their numbers or dashes; nested items follow their parent."""
    number = 0
    for item in listed.iter("item") if depth == 0 and not listed.findall("item") else listed.findall("item"):
        inner = item.findall(".//list")
        for one in inner:
            if (parent := one.getparent()) is not None:
                parent.remove(one)
        text = _visible(" ".join(item.itertext()))
        number += bool(text)
        if text:
            yield ["item", depth, "", f"{number}. {text}" if listed.get("rend") == "ol" else f"- {text}"]
        for one in inner:
            yield from _items(one, depth + 1)


def _rows(table: etree._Element) -> Iterator[list[Any]]:
    """Yield table rows; level 1 marks the header row."""
    for number, row in enumerate(table.iter("row")):
        cells = [_visible(" ".join(cell.itertext())).replace("|", "/") for cell in row.iter("cell")]
        names = number == 0 and all(cell.get("role") == "head" for cell in row.iter("cell"))
        if any(cells):
            yield ["row", int(names), "", f"| {' | '.join(cells)} |"]


def _visible(text: str) -> str:
    """Return the text on one line, without invisible characters."""
    return " ".join(_UNSEEN.sub("", text).split())
