"""The former home of the copy, until everybody takes it from ``ingestion.sources``."""

from ingestion.sources.opening import copy, open_beneath

__all__ = ["copy", "open_beneath"]
