"""Tools of an admin: the doctor and metrics."""
