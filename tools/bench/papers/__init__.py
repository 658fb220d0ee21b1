"""Papers of our own: PDFs drawn at run time whose headings, tables, order and figures we know."""
