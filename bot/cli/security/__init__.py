"""Commands about the audit, and about links that must end."""
