"""Page layout: headings, reading order, tables, choice of pages for OCR. Pure functions."""
