"""Everything at once: what goes wrong around a running ``footnote serve``, and what is counted of it."""
