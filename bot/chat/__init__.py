"""The seam between chat platforms and the core: what each side offers the other."""
