"""What a browser sees: the page viewer behind every link, the local console, and health."""
