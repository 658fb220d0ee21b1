"""Reader of Markdown, as somebody would add a format: headings become large lines of one page."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

from storage.models import Box, WordBox
from storage.pdf.pdf_process import PdfProcess
from storage.readers.base import MediaType, Reader
from storage.text.word_boxes import SCALE, WordMap

MARKDOWN = MediaType("text/markdown", "a Markdown file", "Markdown files", (".md", ".markdown"))
BODY_SIZE, HEADING_SIZES = 10, (24, 18, 14)


async def read_markdown(_sandbox: PdfProcess, path: Path) -> bytes:
    """Return a file's text as pages; a format that is harder to read needs a sandboxed child."""
    return pages_of(await asyncio.to_thread(path.read_text, "utf-8"))


def pages_of(source: str) -> bytes:
    """Return Markdown as the lines of JSON that ``storage.pdf.protocol.parse_reading`` parses."""
    rows = [re.fullmatch(r"(#{1,3} )?(.*)", row) for row in source.splitlines()]
    text = ""
    lines: list[list[int]] = []
    words: list[WordBox] = []
    for number, row in enumerate(rows):
        heading, body = (row[1] or "", row[2]) if row else ("", "")
        start = len(text)
        box = Box(0.1, number / len(rows), 0.9, (number + 1) / len(rows))
        for word in re.finditer(r"\S+", body):
            words.append(WordBox(start + word.start(), start + word.end(), 1, len(lines), box))
        size = HEADING_SIZES[heading.count("#") - 1] if heading else BODY_SIZE
        if body:
            sides = [round(side * SCALE) for side in box]
            lines.append([start, start + len(body), size * 10, int(bool(heading)), *sides])
        text += f"{body}\n"
    page: dict[str, object] = {"number": 1, "label": "", "size": [595, 842], "text": text, "struck": 0}
    page |= {"words": WordMap.pack(words).to_base64(), "lines": [side for line in lines for side in line]}
    head = {"title": "", "repaired": False, "locked": False}
    return b"".join(json.dumps(line).encode() + b"\n" for line in (head, page, {"end": 1}))


MARKDOWN_READER = Reader((MARKDOWN,), read_markdown, version="markdown-1")
