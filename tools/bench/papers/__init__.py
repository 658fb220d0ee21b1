"""Generated papers: PDFs drawn at run time with known headings, tables, reading order and figures."""
