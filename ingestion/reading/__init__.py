"""Reading: turns contents into pages, chunks and vectors."""
