"""Page viewer: a cited page with its marks, document search, and the document's outline."""
