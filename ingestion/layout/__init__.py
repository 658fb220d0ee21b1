"""Layout of a page: headings, reading order, tables, which pages want OCR. Pure functions."""
