"""Publishing: makes readings searchable in their channels, and keeps SQL, index and disk consistent."""
