"""Uploads of PDFs in chats and in the console: checks, quotas, storage in watched folders."""
