"""Conversations on any chat platform, and the seam between platforms and answers."""
