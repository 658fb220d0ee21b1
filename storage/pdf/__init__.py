"""The limited child that opens PDFs: ``process`` starts it, ``parent`` and ``child`` are what it runs.

Nothing here is imported on your behalf: the parent program must stay small, and the service must
never load PyMuPDF.
"""
