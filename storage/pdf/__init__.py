"""Limited children that open PDFs: ``process`` asks, ``program`` and ``owner`` start, ``parent`` forks.

A kind of child is a module: ``child`` reads text and draws pages, ``ocr_child`` reads pictures.

Nothing here is imported on your behalf: the parent program must stay small, and the service must
never load PyMuPDF.
"""
