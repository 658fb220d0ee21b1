"""Health checks of ``footnote doctor``: a module per family, run concurrently."""
