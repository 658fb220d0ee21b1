"""The sandbox that opens PDFs: ``pdf_process`` asks, ``fork_client`` keeps the ``fork_server`` running.

Each kind of child is a module of ``child``: ``text_job`` reads text and draws pages, ``layout_job`` finds the
parts of pages, ``ocr_job`` reads pictures. ``sandbox`` takes rights and resources away, ``protocol`` parses
what comes back. Nothing is imported here: the fork server must stay small, and the service must never load
PyMuPDF.
"""
