"""Web pages that admins approved: what is approved, and what was fetched of it."""
