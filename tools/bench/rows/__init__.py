"""Rows of the benchmarks."""
