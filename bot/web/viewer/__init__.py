"""What a link opens: a cited page with its marks, search in its document, and the document's outline."""
