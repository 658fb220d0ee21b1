"""Citation records, signed links to cited pages, source buttons."""
