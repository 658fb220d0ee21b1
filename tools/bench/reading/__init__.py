"""How rightly readers read PDFs: one form for what each has seen, and a measure for each part of it."""
