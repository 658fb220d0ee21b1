"""PDFs whose pages are images, as from a scanner."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw, ImageFont

DPI = 150


def picture_pdf(*pages: str) -> bytes:
    """Return a PDF of images of these texts, each under a black bar, without any text layer."""
    font = ImageFont.load_default(size=32)
    pictures = []
    for text in pages:
        picture = Image.new("L", (1240, 600), 255)
        paper = ImageDraw.Draw(picture)
        paper.rectangle((100, 60, 1140, 80), fill=0)
        paper.multiline_text((100, 140), text, font=font, fill=0, spacing=16)
        pictures.append(picture)
    file = io.BytesIO()
    pictures[0].save(file, "PDF", resolution=DPI, save_all=True, append_images=pictures[1:])
    return file.getvalue()
