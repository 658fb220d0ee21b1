"""HTTP side: the page viewer behind every link, the console, and health endpoints."""
