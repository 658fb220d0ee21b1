"""Keeps the index equal to the folders."""
