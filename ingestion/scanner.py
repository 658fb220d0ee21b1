"""The former home of the scan, until everybody takes it from ``ingestion.sources``."""

from ingestion.sources.listing import first_level, scan, scan_file
from ingestion.sources.names import safe_name, why_passed_over
from ingestion.sources.port import Look, Scan, SeenFile

__all__ = ["Look", "Scan", "SeenFile", "first_level", "safe_name", "scan", "scan_file", "why_passed_over"]
