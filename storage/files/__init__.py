"""Blob store, files of readings, page images, and the object storage behind them."""
