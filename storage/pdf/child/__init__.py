"""Code that runs inside the sandboxed children: text, layout, OCR and HTML jobs."""
