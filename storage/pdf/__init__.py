"""Sandboxed PDF access: ``pdf_process`` is the interface, ``fork_client`` runs the ``fork_server``.

Each kind of child process is a module of ``child``: ``text_job`` extracts text and renders pages,
``layout_job`` detects the regions of pages, ``ocr_job`` reads images. ``sandbox`` drops privileges and sets
resource limits, ``protocol`` parses the results. Nothing is imported here: the fork server must stay small,
and the service must never load PyMuPDF.
"""
