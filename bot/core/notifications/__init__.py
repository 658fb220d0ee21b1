"""Receipts and notices to channels and admins."""
