"""Notifications to channels and admins: receipts, welcomes, digests, updates of posted answers."""
