"""Planner statistics for SQLite, as of a grown home.

Without statistics the planner rates every index equally and may visit all readings of a state for each
document (10,000 documents: 24 s instead of 0.2). ``ANALYZE`` on a young home would be as misleading, so the
numbers are set by hand, as https://sqlite.org/optoverview.html allows. PostgreSQL gathers its statistics
automatically.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Connection

# Table -> index -> number of rows, then rows per value of its first column, of its first two, ...
SHAPE = {
    "document": {
        "ix_document_state": "10000 3000",
        "ix_document_folder_id_file": "10000 1000 1",
        "ix_document_channel_id_state": "10000 1000 300",
    },
    "version": {"ix_version_document_id": "10000 2", "ix_version_sha256": "10000 2"},
    "reading": {"ix_reading_queue": "20000 6000 3000 3000 3000 1", "ix_reading_sha256_state": "20000 2 1"},
    "publication": {
        "ix_publication_queue": "20000 6000 3000 1 1",
        "ix_publication_channel_id_state": "20000 2000 1000",
        "ix_publication_version_id_state": "20000 2 1",
        "ix_publication_reading_id": "20000 2",
    },
}


def write_planner_statistics(connection: Connection) -> None:
    """Write the statistics; every migration that changes one of these indexes calls this again."""
    if connection.dialect.name != "sqlite":
        return
    connection.exec_driver_sql("ANALYZE")
    connection.exec_driver_sql("DELETE FROM sqlite_stat1")
    connection.execute(
        sa.text("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (:table, :index, :rows)"),
        [
            {"table": table, "index": index, "rows": rows}
            for table, indexes in SHAPE.items()
            for index, rows in indexes.items()
        ],
    )
