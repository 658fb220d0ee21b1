"""Citations as they are kept, signed links to their pages, source buttons."""
